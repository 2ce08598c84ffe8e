package node

// KubeProxy is the program that routes Services, and the name of its component and
// certificate.
const KubeProxy = "kube-proxy"

// proxyConfig is the path of kube-proxy's configuration inside a node.
const proxyConfig = "/etc/kubernetes/kube-proxy.yaml"

// proxy renders kube-proxy's configuration. Its rules are in the node's network namespace
// and disappear with it. It changes no kernel setting: the size of the connection table
// is not per namespace, so it would be the machine's.
func (c Config) proxy() []byte {
	config := object{
		"apiVersion":        "kubeproxy.config.k8s.io/v1alpha1",
		"kind":              "KubeProxyConfiguration",
		"mode":              "nftables",
		"hostnameOverride":  c.Name,
		"clientConnection":  object{"kubeconfig": c.pki(KubeProxy + ".kubeconfig")},
		"clusterCIDR":       c.PodRanges,
		"nodePortAddresses": []string{"primary"},
		"conntrack": object{
			"maxPerCore":            0,
			"tcpEstablishedTimeout": "0s",
			"tcpCloseWaitTimeout":   "0s",
		},
		"nftables": object{"minSyncPeriod": "100ms"}, // a tenth of the default, which makes tests faster
	}
	if !c.MayRaiseLimits {
		config["oomScoreAdj"] = 0
	}
	return render(config)
}
