//go:build tools

// Package tools names the programs that scripts/controlplane/build builds, so that `go mod tidy` keeps exactly the
// modules that they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "pod-reaper.test/kubernetes/hollow-kubelet"
)
