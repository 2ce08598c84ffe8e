package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLogsOfAFailedStartAreKept checks that the logs of a demo still exist after its directories have been removed.
func TestLogsOfAFailedStartAreKept(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	kubelet := filepath.Join(parent, "demo", "node1", "log", "kubelet.log")
	agent := filepath.Join(parent, "demo-processes", "akri-agent.log")
	for _, file := range []string{kubelet, agent} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(filepath.Base(file)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := copyLogs(parent, []string{kubelet, filepath.Join(parent, "demo", "log", "none.log"), agent})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that does not exist: %v", err)
	}
	if err := os.RemoveAll(parent); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"demo-node1-log-kubelet.log": "kubelet.log", "demo-processes-akri-agent.log": "akri-agent.log"} {
		if got, err := os.ReadFile(filepath.Join(kept, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}
