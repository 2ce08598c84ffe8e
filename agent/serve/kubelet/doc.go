// Package kubelet is the agent's client of the node's kubelet: it reads which
// devices containers have (lister.go), follows the node's pods (pods.go), and
// keeps a device plugin connected (plugin.go, registrar.go, socket.go).
//
// Always: a socket name is used for one attempt only; one registration path is
// active at a time, because with two the kubelet mixes up the lists.
// Never: a decision about slots.
package kubelet
