//go:build tools

// Package tools names the program that scripts/controlplane/build builds.
package tools

import _ "k8s.io/kube-state-metrics/v2"
