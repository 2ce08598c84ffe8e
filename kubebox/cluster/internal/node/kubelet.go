package node

import (
	"encoding/json"
	"net/netip"
)

const kubeletConfig = "/etc/kubernetes/kubelet.yaml"

type object map[string]any

// kernelSettings are what the kubelet asks of the kernel. A node shows them to
// it without the machine having them.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// kubelet renders the kubelet's configuration. Beside what a node in namespaces
// needs, it reports changes soon, so that tests need not wait for them.
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
		"clusterDomain":     "cluster.local",
		"resolvConf":        "",

		"cgroupDriver":           "cgroupfs",
		"cgroupRoot":             "/" + c.Cgroup, // not /kubepods: nodes of one machine must not share it
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

		// The disk is the machine's: only nearly full is worth an eviction, and
		// an unused image is never collected, since it could not be pulled again.
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

// render writes JSON, which every reader of YAML takes.
func render(o object) []byte {
	b, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		panic(err) // plain values only
	}
	return append(b, '\n')
}
