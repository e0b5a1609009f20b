// The kubelet's own code on a simulated container runtime.
//
// It registers, renews, starts and confirms what a real kubelet would, at the intervals that these tests shorten.
//
// SIGUSR1 makes the container runtime fail, and SIGUSR2 restores it. In between the kubelet runs, renews its lease, and
// reports that its node is not Ready.
//
// SIGHUP starts the kubelet anew beside a container runtime that does not answer: it renews its lease, and reports
// nothing.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	cadvisor "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

func main() {
	name := flag.String("name", "", "the node's name")
	kubeconfig := flag.String("kubeconfig", "", "where the API server is, and who we are")
	labels := flag.String("labels", "", "the node's own labels: KEY=VALUE[,KEY=VALUE...]")
	leaseSeconds := flag.Int("lease-seconds", 40, "how long a lease lasts; it is renewed four times as often")
	clockOffset := flag.Duration("clock-offset", 0, "how far the node's clock is off; below zero, it is late")
	muteRuntime := flag.Bool("mute-runtime", false, "the container runtime does not answer")
	flag.Parse()
	if *name == "" || *kubeconfig == "" {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.ContentType = runtime.ContentTypeProtobuf
	if *clockOffset != 0 {
		config.ContentType = runtime.ContentTypeJSON
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return otherClock{*clockOffset, next} })
	}
	client, err := clientset.NewForConfig(config)
	check(err)
	// As the real kubelet: a heartbeat neither waits behind other requests nor outlives its lease.
	config.QPS = -1
	config.Timeout = time.Duration(*leaseSeconds) * time.Second
	heartbeats, err := clientset.NewForConfig(config)
	check(err)

	flags, settings := configured(*name, parse(*labels))
	settings.Address = "127.0.0.1"
	settings.NodeLeaseDurationSeconds = int32(*leaseSeconds)
	// A change is reported within one second, in place of ten.
	settings.NodeStatusUpdateFrequency.Duration = time.Second
	// As by default: the attach-detach controller attaches the volumes of this node.
	settings.EnableControllerAttachDetach = true
	serveDriver(flags.RootDirectory, *name)

	containers := cri.NewFakeRuntimeService()
	containers.FakeStatus = runtimeIs(!*muteRuntime)
	manager := cm.NewStubContainerManager()
	if *muteRuntime {
		manager = mute{manager}
	}
	go func() {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
		for received := range signals {
			if received == syscall.SIGHUP {
				check(syscall.Exec("/proc/self/exe", append(os.Args, "--mute-runtime"), os.Environ()))
			}
			containers.Lock()
			containers.FakeStatus = runtimeIs(received == syscall.SIGUSR2)
			containers.Unlock()
		}
	}()
	machine := &cadvisor.Fake{NodeName: *name}
	run(ctx, flags, settings, client, heartbeats, containers, cri.NewFakeImageService(), machine, manager)
}

func runtimeIs(ready bool) *runtimeapi.RuntimeStatus {
	runtime := &runtimeapi.RuntimeCondition{Type: runtimeapi.RuntimeReady, Status: ready}
	if !ready {
		runtime.Reason, runtime.Message = "Hangs", "the container runtime does not answer"
	}
	network := &runtimeapi.RuntimeCondition{Type: runtimeapi.NetworkReady, Status: true}
	return &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{runtime, network}}
}

// mute keeps the kubelet in its first report for ever, as a runtime does that does not answer. Its lease is renewed all
// the same.
type mute struct{ cm.ContainerManager }

func (mute) Status() cm.Status { select {} }

// otherClock shifts the times of the node's conditions and of its lease, as on a node whose clock is wrong. The kubelet
// sets them only to the current time, and a patch holds only changes, so no time is shifted twice.
type otherClock struct {
	offset time.Duration
	next   http.RoundTripper
}

var clockTimes = regexp.MustCompile(`"(lastHeartbeatTime|lastTransitionTime|renewTime)":"([^"]*)"`)

func (o otherClock) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	ofTheNode := strings.HasPrefix(path, "/api/v1/nodes") || strings.Contains(path, "/namespaces/kube-node-lease/")
	if ofTheNode && request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		body = clockTimes.ReplaceAllFunc(body, o.shifted)
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(body))
		request.GetBody = nil
		request.ContentLength = int64(len(body))
	}
	return o.next.RoundTrip(request)
}

func (o otherClock) shifted(field []byte) []byte {
	parts := clockTimes.FindSubmatch(field)
	written, err := time.Parse(time.RFC3339Nano, string(parts[2]))
	check(err)
	// A lease requires microseconds, and any other time accepts them.
	return fmt.Appendf(nil, `"%s":"%s"`, parts[1], written.Add(o.offset).Format("2006-01-02T15:04:05.000000Z07:00"))
}

func check(err error) {
	if err != nil {
		klog.Fatal(err)
	}
}

// Another process may take the port before the kubelet does. The kubelet then ends with an error.
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
