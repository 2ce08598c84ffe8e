// Package stub stands in for the neighbors of agents on many nodes: kubelets that
// connect to every device plugin, and a discovery handler whose devices the
// measurement sets.
//
// Always: real sockets and protocols; one gRPC server and one file watcher for all
// kubelets, so that a thousand of them are cheap. Never: the kubelet's pitfalls,
// which internal/kubelettest has.
package stub
