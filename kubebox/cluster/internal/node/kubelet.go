package node

import (
	"encoding/json"
	"net/netip"
)

// kubeletConfig is the path of the kubelet's configuration inside a node.
const kubeletConfig = "/etc/kubernetes/kubelet.yaml"

// object is a JSON object.
type object map[string]any

// kernelSettings are the kernel settings that the kubelet requires. The node's /proc/sys
// shows these values; the machine keeps its own.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// kubelet renders the kubelet's configuration. In addition to what a node in
// namespaces needs, it shortens reporting intervals, which makes tests faster.
func (c Config) kubelet() []byte {
	config := object{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"address":                  "0.0.0.0",
		"port":                     10250,
		"healthzBindAddress":       "127.0.0.1",
		"authentication": object{
			"anonymous": object{"enabled": false},
			"webhook":   object{"enabled": true},
			"x509":      object{"clientCAFile": c.pki("ca.crt")},
		},
		"authorization":     object{"mode": "Webhook"},
		"tlsCertFile":       c.pki(c.Name + ".crt"),
		"tlsPrivateKeyFile": c.pki(c.Name + ".key"),
		"clusterDomain":     c.ClusterDomain,
		"clusterDNS":        []string{c.DNS},
		"resolvConf":        "",

		"cgroupDriver":           "cgroupfs",
		"cgroupRoot":             "/" + c.Cgroup, // not /kubepods, which the nodes of one machine would share
		"cgroupsPerQOS":          true,
		"enforceNodeAllocatable": []string{"pods"},
		"failCgroupV1":           false,
		"failSwapOn":             false,
		"protectKernelDefaults":  true, // see kernelSettings

		"nodeStatusUpdateFrequency": "1s",
		"nodeStatusReportFrequency": "30s",
		"nodeLeaseDurationSeconds":  16,
		"syncFrequency":             "10s",
		"maxPods":                   200,
		"volumePluginDir":           "/var/lib/kubelet/volumeplugins",

		// The disk is the machine's: evict only when it is nearly full. Images are
		// never garbage collected, because they could not be pulled again.
		"evictionHard": object{
			"memory.available":  "50Mi",
			"nodefs.available":  "1%",
			"imagefs.available": "1%",
			"nodefs.inodesFree": "1%",
		},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
	if !c.MayRaiseLimits {
		config["oomScoreAdj"] = 0
	}
	return render(config)
}

// kubeletFlags returns the kubelet's command line flags.
func (c Config) kubeletFlags() []string {
	return append([]string{
		"--config=" + kubeletConfig,
		"--kubeconfig=" + c.pki(c.Name+".kubeconfig"),
		"--root-dir=/var/lib/kubelet",
		"--hostname-override=" + c.Name,
		"--node-ip=" + netip.MustParsePrefix(c.Address).Addr().String(),
		"--v=2",
	}, c.Flags["kubelet"]...)
}

// render encodes o as JSON, which is also YAML.
func render(o object) []byte {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // only plain values
	}
	return append(b, '\n')
}
