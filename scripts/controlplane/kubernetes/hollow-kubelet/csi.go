package main

import (
	"context"
	"net"
	"os"
	"path/filepath"

	csi "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// driverName is that of a CSIDriver object where a test has volumes of this driver.
const driverName = "pretended.pod-reaper.test"

// driver is the node's half of a CSI driver that only pretends: the kubelet mounts and unmounts volumes through it, and
// nothing is mounted. What attaches and detaches is the attach-detach controller, and whatever a test runs in place of an
// external attacher.
type driver struct {
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
	node, socket string
}

// serveDriver registers the driver with the kubelet of that root folder, which looks for sockets there.
func serveDriver(root, node string) {
	folder := filepath.Join(root, "plugins_registry")
	check(os.MkdirAll(folder, 0o755))
	socket := filepath.Join(folder, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		// Where the folder of the tests has a long name, there are no such volumes.
		klog.ErrorS(err, "The CSI driver does not serve")
		return
	}
	server := grpc.NewServer()
	both := &driver{node: node, socket: socket}
	csi.RegisterNodeServer(server, both)
	registration.RegisterRegistrationServer(server, both)
	go func() { check(server.Serve(listener)) }()
}

func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: driverName, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		klog.ErrorS(nil, "The CSI driver is not registered", "error", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (d *driver) NodePublishVolume(context.Context, *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, nil
}

func (d *driver) NodeUnpublishVolume(context.Context, *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
