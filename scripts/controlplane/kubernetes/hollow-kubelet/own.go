//go:build !kubemark

package main

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"time"

	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/tracing"
	cri "k8s.io/cri-api/pkg/apis"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	container "k8s.io/kubernetes/pkg/kubelet/container/testing"
	prober "k8s.io/kubernetes/pkg/kubelet/prober/testing"
	"k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/local"
	"k8s.io/kubernetes/pkg/volume/nfs"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
)

// configured returns the kubelet's own defaults, without what needs a real machine.
func configured(name string, labels map[string]string) (*options.KubeletFlags, *config.KubeletConfiguration) {
	root, err := os.MkdirTemp("", "hollow-kubelet.")
	check(err)
	folder := func(name string) string {
		path := filepath.Join(root, name)
		check(os.Mkdir(path, 0o755))
		return path
	}
	flags := options.NewKubeletFlags()
	flags.RootDirectory = root
	flags.HostnameOverride = name
	flags.NodeLabels = labels
	settings, err := options.NewKubeletConfiguration()
	check(err)
	settings.StaticPodPath = folder("static-pods")
	settings.PodLogsDir = folder("pod-logs")
	// Only checked, and never called: the services are given to the kubelet.
	settings.ImageServiceEndpoint = "unix:///run/containerd/containerd.sock"
	settings.Port = int32(freePort())
	settings.ReadOnlyPort = 0
	settings.CgroupsPerQOS = false
	settings.ClusterDNS = []string{}
	settings.SyncFrequency.Duration = 10 * time.Second
	return flags, settings
}

// run starts a kubelet, and does not return.
func run(
	ctx context.Context, flags *options.KubeletFlags, settings *config.KubeletConfiguration,
	client, heartbeats *clientset.Clientset, containers cri.RuntimeService, images cri.ImageManagerService,
	machine cadvisor.Interface, manager cm.ContainerManager,
) {
	var volumes []volume.VolumePlugin
	for _, plugins := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), hostpath.FakeProbeVolumePlugins(volume.VolumeConfig{}),
		nfs.ProbeVolumePlugins(volume.VolumeConfig{}), secret.ProbeVolumePlugins(), downwardapi.ProbeVolumePlugins(),
		configmap.ProbeVolumePlugins(), projected.ProbeVolumePlugins(), local.ProbeVolumePlugins(), csi.ProbeVolumePlugins(),
	} {
		volumes = append(volumes, plugins...)
	}
	dependencies := &kubelet.Dependencies{
		KubeClient:                client,
		HeartbeatClient:           heartbeats,
		ProbeManager:              prober.FakeManager{},
		RemoteRuntimeService:      containers,
		RemoteImageService:        images,
		CAdvisorInterface:         machine,
		OSInterface:               &container.FakeOS{},
		ContainerManager:          manager,
		VolumePlugins:             volumes,
		OOMAdjuster:               oom.NewFakeOOMAdjuster(),
		Mounter:                   &mount.FakeMounter{},
		Subpather:                 &subpath.FakeSubpath{},
		HostUtil:                  hostutil.NewFakeHostUtil(nil),
		PodStartupLatencyTracker:  util.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: call(util.NewNodeStartupLatencyTracker, klog.TODO()).(util.NodeStartupLatencyTracker),
		TracerProvider:            tracing.NewNoopTracerProvider(),
		// A real one reads /dev/kmsg.
		Recorder: &record.FakeRecorder{},
	}
	server := &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *settings}
	if failed := call(app.RunKubelet, ctx, server, dependencies); failed != nil {
		check(failed.(error))
	}
	select {}
}

// call calls a function whose parameters differ between versions: each gets what is offered of its type, or its zero.
func call(function any, offered ...any) any {
	called := reflect.ValueOf(function)
	var arguments []reflect.Value
	for at := range called.Type().NumIn() {
		argument := reflect.Zero(called.Type().In(at))
		for _, offer := range offered {
			if reflect.TypeOf(offer).AssignableTo(argument.Type()) {
				argument = reflect.ValueOf(offer)
			}
		}
		arguments = append(arguments, argument)
	}
	return called.Call(arguments)[0].Interface()
}
