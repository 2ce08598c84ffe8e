package node

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"akri.sh/akri/kubebox/cluster/internal/process"
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

func TestNodeRejectsAnInvalidConfiguration(t *testing.T) {
	near, far, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far.Close() // the supervisor has exited
	if err := Init(near, nil); err == nil || err.Error() != "reading the configuration: EOF" {
		t.Errorf("got %v", err)
	}
}

// TestContainerdIsAwaitedForAMinute checks the error of a node whose containerd does not
// start.
func TestContainerdIsAwaitedForAMinute(t *testing.T) {
	if _, err := os.Stat(containerdSocket); err == nil {
		t.Skip("needs a machine without containerd")
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := example.importImages(t.Context(), nil)
		if err == nil || !strings.HasPrefix(err.Error(), "containerd does not respond: dial unix "+containerdSocket) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
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
