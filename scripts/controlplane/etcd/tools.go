//go:build tools

// Package tools names the programs that scripts/controlplane/build builds. A module of its own, because etcd and
// Kubernetes disagree about versions.
package tools

import _ "go.etcd.io/etcd/server/v3"
