// Package node is one Kubernetes node: the first process of namespaces of its
// own, with containerd and a kubelet as its children.
//
// A node sees the machine's files, but its /var, /etc and /run are its own, so
// every program finds and leaves its files at the usual places: the kubelet's
// below /var/lib/kubelet, the handlers' below /var/lib/akri. Those two are also
// visible from the machine, as folders of the node's directory. Pods have
// addresses of their own and reach pods of other nodes by plain routing.
//
// Read init.go first, then containerd.go, kubelet.go and cni.go, which render
// the configuration files.
//
// Always: when the first process ends, everything of the node but its directory
// and its control group is gone. Never: a write to the machine's own /var, /etc,
// /run or kernel settings.
package node
