// Package supervisor runs one cluster: the control plane and the nodes.
//
// Its process is the first of namespaces of its own, the network of the cluster
// among them, and every other process of the cluster descends from it. So when
// it ends, in whatever way, the cluster ends. It ends when it is told to, on
// SIGTERM, and when its lifeline breaks: a pipe whose other end is held by the
// program that started the cluster, unless that program let go on purpose.
//
// Where the kernel grants no namespaces, the supervisor runs the control plane
// alone as ordinary processes on the loopback device.
//
// Read supervisor.go first, then controlplane.go and nodes.go.
package supervisor
