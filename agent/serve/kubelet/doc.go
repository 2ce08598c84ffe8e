// Package kubelet is the agent's client of the node's kubelet: it lists
// the devices of containers (lister.go), and keeps device plugins connected (plugin.go,
// registrar.go, watch.go, socket.go).
//
// Always: a socket name is used for one attempt only; one registration path is
// active at a time, because with two the kubelet confuses the lists.
// Never: a decision about slots.
package kubelet
