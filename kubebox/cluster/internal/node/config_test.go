package node

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files; review the diff before committing it")

var example = Config{
	Name:    "node1",
	Address: "10.99.0.11/24",
	PodCIDR: "10.244.1.0/24",

	PodRanges:     "10.244.0.0/16",
	ClusterDomain: "cluster.local",
	DNS:           "10.96.0.10",

	Dir:    "/tmp/akri-x/node1",
	Bin:    "/repo/bin/k8s",
	PKI:    "/tmp/akri-x/pki",
	Cgroup: "akri-x/node1",
	Flags:  map[string][]string{"kubelet": {"--v=4"}},
}

func TestConfigurationFiles(t *testing.T) {
	mayRaise := example
	mayRaise.MayRaiseLimits = true
	for name, got := range map[string][]byte{
		"containerd.toml":           example.containerd(),
		"containerd-resources.toml": mayRaise.containerd(),
		"cni.json":                  example.cni(),
		"kubelet.json":              example.kubelet(),
		"kube-proxy.json":           example.proxy(),
	} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s (go test -update rewrites it)\n got %s\nwant %s", file, got, want)
		}
	}
}

func TestKubeletSetsOOMScoreOnlyWherePermitted(t *testing.T) {
	for _, may := range []bool{true, false} {
		c := example
		c.MayRaiseLimits = may
		var config map[string]any
		if err := json.Unmarshal(c.kubelet(), &config); err != nil {
			t.Fatal(err)
		}
		if _, set := config["oomScoreAdj"]; set == may {
			t.Errorf("MayRaiseLimits=%v: oomScoreAdj set is %v", may, set)
		}
	}
}

func TestAdditionalFlagsComeLast(t *testing.T) {
	flags := example.kubeletFlags()
	if flags[len(flags)-1] != "--v=4" || !slices.Contains(flags, "--node-ip=10.99.0.11") {
		t.Errorf("got %q", flags)
	}
}
