// The kubelet's own code on a container runtime that only pretends.
//
// Kubemark's hollow kubelet does the same, but takes no setting for what these tests shorten, and wants a folder, a
// port and a socket for each node. What it registers, renews, starts and confirms is what a real one would.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	cadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

func main() {
	name := flag.String("name", "", "the node's name")
	kubeconfig := flag.String("kubeconfig", "", "where the API server is, and who we are")
	labels := flag.String("labels", "", "the node's own labels: KEY=VALUE[,KEY=VALUE...]")
	leaseSeconds := flag.Int("lease-seconds", 40, "how long a lease lasts; it is renewed four times as often")
	flag.Parse()
	if *name == "" || *kubeconfig == "" {
		klog.Fatal("usage: hollow-kubelet --name=NAME --kubeconfig=FILE [--labels=KEY=VALUE,...] [--lease-seconds=N]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := clientset.NewForConfig(config)
	check(err)
	// As the real kubelet: a heartbeat neither waits behind other requests nor outlives its lease.
	config.QPS = -1
	config.Timeout = time.Duration(*leaseSeconds) * time.Second
	heartbeats, err := clientset.NewForConfig(config)
	check(err)

	flags, settings := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName:    *name,
		KubeletPort: freePort(),
		MaxPods:     110,
		NodeLabels:  parse(*labels),
	})
	settings.Address = "127.0.0.1"
	settings.NodeLeaseDurationSeconds = int32(*leaseSeconds)
	// What changed is told within a second, in place of ten.
	settings.NodeStatusUpdateFrequency.Duration = time.Second

	containers := cri.NewFakeRuntimeService()
	containers.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true},
		{Type: runtimeapi.NetworkReady, Status: true},
	}}
	kubelet := any(kubemark.NewHollowKubelet(
		flags, settings, client, heartbeats,
		&cadvisor.Fake{NodeName: *name}, cri.NewFakeImageService(), containers, cm.NewStubContainerManager(),
	))
	// Older versions take no context.
	switch kubelet := kubelet.(type) {
	case interface{ Run(context.Context) }:
		kubelet.Run(ctx)
	case interface{ Run() }:
		kubelet.Run()
	}
}

func check(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

// Another process may take it before the kubelet does, which then ends, and says so.
func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func parse(labels string) map[string]string {
	parsed := map[string]string{}
	for _, label := range strings.FieldsFunc(labels, func(r rune) bool { return r == ',' }) {
		key, value, _ := strings.Cut(label, "=")
		parsed[key] = value
	}
	return parsed
}
