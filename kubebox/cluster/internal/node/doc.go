// Package node runs one Kubernetes node: the first process in its own namespaces, with
// containerd, a kubelet and a kube-proxy as its children.
//
// A node sees the machine's files, but has its own /var, /etc, /opt and /run, so that every
// program finds its files in the usual places: the kubelet's below /var/lib/kubelet,
// the handlers' below /var/lib/akri. Those two are also visible on the machine, as
// subdirectories of the node's directory. Pods have their own addresses and reach
// Pods of other nodes by plain routing.
//
// Read init.go first, then containerd.go, kubelet.go, proxy.go and cni.go, which
// render the configuration files.
//
// Always: when the first process exits, nothing is left of the node except its
// directory and its cgroup. Never: a write to the machine's own /var, /etc, /opt, /run or
// kernel settings.
package node
