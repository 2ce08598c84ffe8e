// Package e2e and the packages below it build and run real Kubernetes clusters
// on this machine, for tests, demos and measurements. They are a module of their
// own, so that users of Akri never download a Kubernetes.
//
// Reading order: package build makes the executables, image makes images,
// cluster runs clusters, clustertest runs them in tests; cmd/cluster is all of
// it as a command:
//
//	go -C e2e run ./cmd/cluster build
//	go -C e2e run ./cmd/cluster up --nodes 2
//	go -C e2e run ./cmd/cluster kubectl get nodes
//	go -C e2e run ./cmd/cluster down
package e2e
