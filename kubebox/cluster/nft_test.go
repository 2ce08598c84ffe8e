package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
)

// client runs the workload's client in a Pod and returns its output.
func (c oneNode) client(t *testing.T, pod string, args ...string) (string, error) {
	t.Helper()
	out, err := c.Kubectl(t.Context(), append([]string{"exec", pod, "--", "/workload"}, args...)...)
	return string(out), err
}

// assertLookup fails the test unless lookups in a Pod have these results: each is a
// host's name followed by its addresses.
func (c oneNode) assertLookup(t *testing.T, pod string, want ...string) {
	t.Helper()
	args, lines := []string{"lookup"}, ""
	for _, result := range want {
		fields := strings.Fields(result)
		args = append(args, fields[0])
		slices.Sort(fields[1:])
		lines += strings.Join(fields, " ") + "\n"
	}
	got, err := c.client(t, pod, args...)
	if err != nil || got != lines {
		t.Errorf("in the pod %s:\n%swant:\n%s%v", pod, got, lines, err)
	}
}

// TestClusterWithoutNFT checks that a machine without nft runs clusters that resolve
// names, and says what to install.
func TestClusterWithoutNFT(t *testing.T) {
	requireNodes(t)
	bin, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	without, err := os.MkdirTemp("/tmp", "bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(without) })
	for _, dir := range append([]string{bin}, filepath.SplitList(os.Getenv("PATH"))...) {
		entries, _ := os.ReadDir(dir) // a missing directory has no programs
		for _, e := range entries {
			if e.Name() == "nft" {
				continue
			}
			err := os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(without, e.Name()))
			if err != nil && !errors.Is(err, fs.ErrExist) { // the first directory wins, as in PATH
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", without)
	var progress strings.Builder
	c := oneNode{clustertest.Start(t, cluster.Config{Nodes: 1, Bin: without, Progress: func(text string) { fmt.Fprintln(&progress, text) }})}
	if c.RoutesServices() || !strings.Contains(progress.String(), "install nftables") || strings.Contains(progress.String(), "are routed") {
		t.Errorf("routes Services: %v; the progress is\n%s", c.RoutesServices(), progress.String())
	}
	const service = `{apiVersion: v1, kind: Service, metadata: {name: pods},
  spec: {selector: {app: w}, clusterIP: None, ports: [{port: 6052}]}}`
	if _, err := c.KubectlInput(t.Context(), []byte(pod+"---\n"+service), "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	c.kubectl(t, "label", "pod", "broker", "app=w")
	c.kubectl(t, "wait", "--for=condition=Ready", "pod/broker", "--timeout=60s")
	c.assertLookup(t, "broker", "kubernetes 10.96.0.1")
	eventually(t, 30*time.Second, "the pod is reached by the name of a headless Service", func() bool {
		got, err := c.client(t, "broker", "get", "1", "http://pods:6052/")
		return err == nil && got == "broker\n"
	})
}
