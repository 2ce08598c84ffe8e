package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unified fakes the files of a v2 hierarchy. They show what is written, but not how a
// kernel would react.
func unified(t *testing.T, controllers, delegated string) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"", "akri-x", "akri-x/node1"} {
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": delegated} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestControllersAreDelegatedInV2(t *testing.T) {
	root := unified(t, "cpu memory", "cpu")
	if err := makeUnified(root, "akri-x/node1"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", "akri-x", "akri-x/node1"} {
		got, err := os.ReadFile(filepath.Join(root, dir, "cgroup.subtree_control"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(got)) != "+memory" {
			t.Errorf("%q: wrote %s, want only memory, as cpu is already delegated", dir, got)
		}
	}
}

func TestCgroupsAreRemovedDeepestFirst(t *testing.T) {
	root := t.TempDir()
	top := filepath.Join(root, "akri-x")
	if err := os.MkdirAll(filepath.Join(top, "node1", "kubepods", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if !removeTree(top) {
		t.Error("removeTree returns false")
	}
	if _, err := os.Stat(top); err == nil {
		t.Error("the top cgroup still exists")
	}
}
