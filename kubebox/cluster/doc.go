// Package cluster starts real Kubernetes clusters on this machine, each within
// seconds, and leaves nothing of them.
//
// A cluster is etcd, kube-apiserver, kube-controller-manager and kube-scheduler
// of the release in e2e/kubernetes, and any number of nodes, each with a
// containerd and a kubelet of its own in namespaces of its own. Pods run for
// real: with networking, device plugins, probes, logs and exec. Package build
// makes the executables from Go modules.
//
//	func TestMain(m *testing.M) {
//		cluster.Reexec() // the test's executable is the supervisor, too
//		os.Exit(m.Run())
//	}
//
//	c, err := cluster.Start(ctx, cluster.Config{Nodes: 2})
//	defer c.Stop()
//	... c.Kubeconfig() ...
//	c.Do(ctx, cluster.Restart, "node1/kubelet")
//
// Tests had rather use package clustertest, which also skips where no cluster
// can run and keeps the logs of a test that failed.
//
// # What is inside
//
// The API server is reached from this machine by Kubeconfig, at a free port of
// the loopback device. Everything else has addresses in a network of the
// cluster's own, which [Cluster.Dial] and [Cluster.Listen] reach from here. Pods
// reach each other and the API server by IP address; there is no DNS and no
// kube-proxy, so of all Services only "kubernetes" answers at its ClusterIP. The
// API server resolves Services itself, which is what webhooks need.
//
// The run directory shows what is going on: log/ and node1/log/ have the output
// of the programs, node1/kubelet is the node's /var/lib/kubelet (its
// device-plugins, plugins_registry and pod-resources included), node1/akri its
// /var/lib/akri.
//
// # What holds
//
// Every process of a cluster ends with its supervisor, and the supervisor with
// the program that called [Start], even if that is killed, unless
// Config.Detached. The machine's own network, mounts, kernel settings and
// control groups stay as they are; the control groups of pods are below one
// named after the cluster. Clusters do not see each other.
//
// # Where it runs
//
// Nodes need root and a kernel that grants namespaces and mounts; [Probe] says
// what is missing. Without them Config.Nodes must be 0, and the control plane
// runs as ordinary processes on the loopback device. Tested on Linux 6.18 with
// control groups version 1 and without CAP_SYS_RESOURCE; the code knows version
// 2 alone, too, but that was not tested.
package cluster
