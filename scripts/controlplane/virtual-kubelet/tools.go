//go:build tools

// Package tools names the program that scripts/controlplane/build builds. Its mock provider is part of it.
package tools

import _ "github.com/virtual-kubelet/virtual-kubelet/cmd/virtual-kubelet"
