package main

import (
	"context"
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

// TestBadDirectories checks that a directory that cannot be used is named before anything is built.
func TestBadDirectories(t *testing.T) {
	built, cancel := context.WithCancel(t.Context())
	cancel() // what is built fails
	d := newDir(t)
	parent := filepath.Dir(string(d))
	t.Chdir(parent) // the path of a checkout may be too long for sockets
	writeFile(t, filepath.Join(parent, "full", "notes"))
	writeFile(t, filepath.Join(parent, "file"))
	for dir, want := range map[string]string{
		"":                                   "--dir is empty",
		"/":                                  "/ is not empty and holds no cluster: choose an empty or new directory",
		"/tmp/" + strings.Repeat("long", 20): "choose a shorter path",
		parent + "/file":                     "is not a directory: choose another path",
		parent + "/full":                     "is not empty and holds no cluster: choose an empty or new directory",
		parent + "/missing/demo":             "cannot be created in " + parent + "/missing",
		"missing/demo":                       "cannot be created in " + parent + "/missing",
	} {
		if err := run(built, []string{"--dir=" + dir, "up"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--dir=%s\n got %v\nwant %s", dir, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(parent, "full", "notes")); err != nil {
		t.Error(err)
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
