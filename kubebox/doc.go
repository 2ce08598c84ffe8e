// Package kubebox contains the packages that build Kubernetes and run real clusters
// on this machine, without Docker. They form a separate module, so that users of Akri
// never download Kubernetes.
//
// Reading order: package build compiles the executables, image writes container
// images, cluster runs clusters, and clustertest runs them in Go tests.
// cmd/cluster provides the same on the command line:
//
//	go -C kubebox run ./cmd/cluster build
//	go -C kubebox run ./cmd/cluster up --nodes 2
//	go -C kubebox run ./cmd/cluster kubectl get nodes
//	go -C kubebox run ./cmd/cluster down
//
// Never: knowledge of Akri, except for its directory on a node, /var/lib/akri.
package kubebox
