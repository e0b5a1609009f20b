//go:build kubemark

package main

import (
	"bytes"
	"context"
	"encoding/json"

	clientset "k8s.io/client-go/kubernetes"
	cri "k8s.io/cri-api/pkg/apis"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"
)

// Before 1.30, whose kubelets want other dependencies. 1.38 has no kubemark any more.
func configured(name string, labels map[string]string) (*options.KubeletFlags, *config.KubeletConfiguration) {
	return with(kubemark.GetHollowKubeletConfig, map[string]any{
		"NodeName": name, "KubeletPort": freePort(), "MaxPods": 110, "NodeLabels": labels,
	})
}

func run(
	ctx context.Context, flags *options.KubeletFlags, settings *config.KubeletConfiguration,
	client, heartbeats *clientset.Clientset, containers cri.RuntimeService, images cri.ImageManagerService,
	machine cadvisor.Interface, manager cm.ContainerManager,
) {
	kubemark.NewHollowKubelet(flags, settings, client, heartbeats, machine, images, containers, manager).Run()
}

// with calls a function whose argument has these fields, whatever its type is called: that changed between versions.
func with[Options, Flags, Settings any](get func(*Options) (Flags, Settings), fields map[string]any) (Flags, Settings) {
	written, err := json.Marshal(fields)
	check(err)
	options := new(Options)
	decoder := json.NewDecoder(bytes.NewReader(written))
	decoder.DisallowUnknownFields()
	check(decoder.Decode(options))
	return get(options)
}
