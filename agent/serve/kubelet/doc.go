// Package kubelet is the agent's client of the node's kubelet: it lists
// the devices of containers (lister.go), and keeps device plugins connected (plugin.go,
// registrar.go, watch.go, socket.go).
//
// Always: a socket name is used for one attempt only; the kubelet's plugin watcher is the one
// way of registration, because with two the kubelet confuses the lists.
// Never: a decision about slots.
package kubelet
