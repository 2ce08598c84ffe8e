package main

import (
	"context"
	"encoding/json"
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

// record writes the record of a cluster whose supervisor is a process that started at a time.
func (d localDemo) record(t *testing.T, is string, pid int, started string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Name": "akri-none", "Purpose": is, "Pid": pid, "StartTime": started})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(string(d), "cluster.json")
	writeFile(t, file)
	if err := os.WriteFile(file, text, 0o600); err != nil {
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

// TestInterruptedDemo checks that what a killed run has left is recognized, and that it is removed.
func TestInterruptedDemo(t *testing.T) {
	for name, left := range map[string]func(d localDemo){
		"its cluster has crashed": func(d localDemo) {
			d.record(t, purpose, os.Getpid(), "1")
			writeFile(t, d.mark())
		},
		"its processes": func(d localDemo) { writeFile(t, filepath.Join(d.processes(), "akri-processes")) },
		"an empty cluster": func(d localDemo) {
			d.record(t, purpose, 0, "")
			writeFile(t, filepath.Join(string(d), "images", "pause.tar"))
		},
	} {
		d := newDir(t)
		left(d)
		if c, found, err := d.find(); c != nil || found != interrupted || err != nil {
			t.Errorf("%s: %v, %v, %v, want that it was interrupted", name, c, found, err)
		}
		if err := d.down(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c, found, err := d.find(); c != nil || found != absent || err != nil {
			t.Errorf("%s, after down: %v, %v, %v, want nothing", name, c, found, err)
		}
	}
}

// TestRunningDemo checks that a running cluster is the complete demo only with its mark, and that a cluster which is not
// the demo's is neither used nor stopped.
func TestRunningDemo(t *testing.T) {
	d, me := newDir(t), os.Getpid()
	d.record(t, purpose, me, startTime(me))
	if c, found, err := d.find(); c == nil || found != interrupted || err != nil {
		t.Errorf("before it is complete: %v, %v, %v", c, found, err)
	}
	writeFile(t, d.mark())
	if c, found, err := d.find(); c == nil || found != complete || err != nil {
		t.Errorf("when it is complete: %v, %v, %v", c, found, err)
	}
	d.record(t, "", me, startTime(me))
	want := "the cluster in " + string(d) + " is not the demo's: "
	_, _, err := d.find()
	for what, err := range map[string]error{"up": err, "down": d.down()} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s with the cluster of somebody else: %v", what, err)
		}
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
