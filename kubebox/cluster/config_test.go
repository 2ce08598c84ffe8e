package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/build"
)

// fakeBin returns a directory that looks as if everything had been built.
func fakeBin(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	missing, ok := errors.AsType[*build.MissingError](build.Check(dir, true))
	if !ok {
		t.Fatal("an empty directory: nothing is missing")
	}
	for _, name := range missing.Files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestConfigRejectsInvalidSettings(t *testing.T) {
	bin := fakeBin(t)
	for _, tc := range []struct {
		reason string
		config Config
		want   string
	}{
		{"nodes replace /var", Config{Nodes: 1, Bin: bin, Dir: "/var/tmp/x"}, "below /var"},
		{"nodes replace /run", Config{Nodes: 1, Bin: bin, Dir: "/run/x"}, "below /run"},
		{"sockets have short paths", Config{Bin: bin, Dir: "/tmp/" + strings.Repeat("x", 60)}, "sockets"},
		{"addresses run out", Config{Nodes: 1000, Bin: bin}, "1000 nodes"},
		{"nothing has been built", Config{Bin: t.TempDir()}, "make kubernetes"},
	} {
		if _, err := tc.config.complete(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s\n got %v\nwant %q", tc.reason, err, tc.want)
		}
	}
}

func TestConfigHasDefaults(t *testing.T) {
	c, err := Config{Nodes: 1, Bin: fakeBin(t)}.complete()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(c.Dir)
	if !strings.HasPrefix(c.Dir, "/tmp/akri-") || len(c.Images) != 1 || c.Timeout == 0 || len(c.Controllers) == 0 || c.Progress == nil {
		t.Errorf("got %+v", c)
	}
}

func TestDirectoriesHaveDifferentNames(t *testing.T) {
	a, b := nameOf("/tmp/a/run"), nameOf("/tmp/b/run")
	if a == b || !strings.HasPrefix(a, "akri-run-") {
		t.Errorf("got %s and %s", a, b)
	}
	if got := nameOf("/tmp/akri-Demo_1"); !strings.HasPrefix(got, "akri-demo-1-") {
		t.Errorf("got %s", got)
	}
}

func TestStateRecognizesAReusedPID(t *testing.T) {
	started, err := startTimeOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if s := (state{Pid: os.Getpid(), StartTime: started}); !s.alive() {
		t.Error("this process: alive returns false")
	}
	if s := (state{Pid: os.Getpid(), StartTime: "1"}); s.alive() {
		t.Error("a process with another start time: alive returns true")
	}
	if s := (state{}); s.alive() {
		t.Error("no process: alive returns true")
	}
}

func TestStateIsReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	if _, err := readState(dir); !errors.As(err, new(*NoClusterError)) {
		t.Errorf("an empty directory: %v", err)
	}
	want := state{Name: "akri-x", Nodes: []string{"node1"}, Pid: 7, StartTime: "8"}
	if err := want.write(dir); err != nil {
		t.Fatal(err)
	}
	got, err := readState(dir)
	if err != nil || got.Name != want.Name || got.Pid != 7 || got.StartTime != "8" || got.Nodes[0] != "node1" {
		t.Errorf("got %+v, %v", got, err)
	}
}
