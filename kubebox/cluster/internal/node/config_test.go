package node

import (
	"encoding/json"
	"os"
	"testing"

	"akri.sh/akri/kubebox/cluster/internal/process"
)

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

var table = process.NewTable() // there can be only one per process

func TestFailedImportIsReportedWithTheEndOfItsLog(t *testing.T) {
	c := example
	c.Dir, c.Bin = t.TempDir(), t.TempDir()
	if err := os.Mkdir(LogDir(c.Dir), 0o755); err != nil {
		t.Fatal(err)
	}
	const script = "#!/bin/sh\nfor i in 1 2 3 4 5 6 7; do echo $i; done; "
	const failed = "ctr failed: 3\n4\n5\n6\n7"
	for end, want := range map[string]string{"exit 1": failed, "kill -KILL $$": failed, "exit 0": ""} {
		if err := os.WriteFile(c.bin("ctr"), []byte(script+end+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := c.importImage(table, os.DevNull)
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: got %v, want %s", end, err, want)
		}
	}
}
