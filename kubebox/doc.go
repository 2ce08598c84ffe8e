// Package kubebox holds the packages that build real Kubernetes clusters and run
// them on this machine, without Docker. They form a module of their own, so that
// users of Akri never download Kubernetes.
//
// Reading order: package build compiles the executables, image writes container
// images, cluster runs clusters, and clustertest runs them in Go tests.
// cmd/cluster offers all of it as a command:
//
//	go -C kubebox run ./cmd/cluster build
//	go -C kubebox run ./cmd/cluster up --nodes 2
//	go -C kubebox run ./cmd/cluster kubectl get nodes
//	go -C kubebox run ./cmd/cluster down
//
// Never: knows anything about Akri but its directory on a node, /var/lib/akri.
package kubebox
