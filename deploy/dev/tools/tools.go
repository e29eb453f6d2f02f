//go:build tools

// Package tools pins the versions of the Go programs that the local stack builds
// when no official binary can be had. Nothing imports it.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubectl"
)
