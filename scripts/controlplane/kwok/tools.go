//go:build tools

// Package tools names the program that scripts/controlplane/build builds.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
