// Package supervisor runs one cluster: the control plane and the nodes.
//
// Its process is the first in its own namespaces, including the cluster's network, and
// all other processes of the cluster descend from it. The cluster therefore ends when
// this process exits, for whatever reason. It exits on request, on SIGTERM, and when its
// lifeline breaks. The lifeline is a pipe whose other end is held by the program that
// started the cluster, unless that program released it.
//
// Where the kernel grants no namespaces, the supervisor runs only the control plane,
// as ordinary processes on the loopback device.
//
// Read supervisor.go first, then controlplane.go, nodes.go and services.go.
//
// Always: nothing of the cluster is left when Run returns. Never: a process of the
// cluster outlives the supervisor.
package supervisor
