// Package cluster starts real Kubernetes clusters on this machine within seconds. A
// stopped cluster leaves nothing behind.
//
// A cluster consists of etcd, kube-apiserver, kube-controller-manager and
// kube-scheduler of the release in kubebox/kubernetes, and any number of nodes, each
// with its own containerd, kubelet and kube-proxy in its own namespaces. Pods really run,
// with networking, Services, DNS, device plugins, probes, logs and exec. Package build
// builds the executables from Go modules.
//
//	func TestMain(m *testing.M) {
//		cluster.Reexec() // the test's executable is also the supervisor
//		os.Exit(m.Run())
//	}
//
//	c, err := cluster.Start(ctx, cluster.Config{Nodes: 2})
//	defer c.Stop()
//	... c.Kubeconfig() ...
//	c.Do(ctx, cluster.Restart, "node1/kubelet")
//
// Tests should use package clustertest, which also skips tests where no cluster can
// run, and keeps the logs of failed tests.
//
// # Contents
//
// The API server is reachable from this machine through Kubeconfig, at a free
// loopback port. Everything else has addresses in the cluster's own network, which
// [Cluster.Dial] and [Cluster.Listen] reach from here.
//
// A cluster with nodes routes Services as most clusters do. kube-proxy, in nftables mode,
// makes ClusterIPs and NodePorts reachable from Pods and nodes. The API server is not on
// a node; it resolves Services itself, so webhooks work. Pods find Services by name:
// CoreDNS serves cluster.local as the Service kube-dns. Unlike in most clusters, it is a
// process next to the API server and not a Deployment, so it is there before the first
// Pod and does not end with a node. Names outside the cluster do not exist. On a machine
// without the program nft, names resolve, but no Service is routed, except "kubernetes";
// see [Cluster.RoutesServices]. [Cluster.Forward] makes a Service reachable from this
// machine in any case.
//
// In the run directory, log/ and node1/log/ contain the logs of the programs,
// node1/kubelet is the node's /var/lib/kubelet (including device-plugins,
// plugins_registry and pod-resources), and node1/akri is its /var/lib/akri.
//
// # Guarantees
//
// Always: every process of a cluster exits with its supervisor, and the supervisor
// with the program that called [Start], even if that is killed, unless
// Config.Detached is set. Never: a change to the machine's own network, mounts,
// kernel settings or cgroups. The cgroups of Pods are below a cgroup named after the
// cluster. Clusters do not see each other.
//
// # Requirements
//
// Nodes need root and a kernel that grants namespaces and mounts; [Probe] reports
// what is missing. Without them, Config.Nodes must be 0, and the control plane runs
// as ordinary processes on the loopback device. Tested on Linux 6.18 with cgroup v1
// and without CAP_SYS_RESOURCE. Cgroup v2 is implemented but not tested.
package cluster
