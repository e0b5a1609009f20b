//go:build tools

// Package tools names the program that tests/controlplane/build builds.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
