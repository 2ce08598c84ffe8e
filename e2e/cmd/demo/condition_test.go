package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/e2e/akri"
)

// newDir returns a directory for a demo, whose path is short, as those of sockets are.
func newDir(t *testing.T) localDemo {
	t.Helper()
	parent, err := os.MkdirTemp("/tmp", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	return localDemo(filepath.Join(parent, "demo"))
}

// writeFile writes an empty file with its directory.
func writeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesOfOthersStay checks that a directory next to the demo that only has the name of one of its own stays.
func TestFilesOfOthersStay(t *testing.T) {
	d := newDir(t)
	notes := filepath.Join(d.processes(), "notes")
	writeFile(t, notes)
	if err := d.down(); err == nil || !strings.Contains(err.Error(), "there is no cluster in") {
		t.Errorf("down without a demo: %v", err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Errorf("down has removed it: %v", err)
	}
	if err := akri.CheckProcessesDir(d.processes()); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("processes in this directory: %v", err)
	}
}
