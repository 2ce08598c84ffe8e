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
	bin, links := fakeBin(t), fakeBin(t)
	for name, target := range map[string]string{"devices": "/dev", "temporary": "/var/tmp"} {
		if err := os.Symlink(target, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	hidden := func(path, below string) string {
		return "the run directory " + path + " is below " + below + ", which nodes replace with their own: choose another directory"
	}
	for _, tc := range []struct {
		reason string
		config Config
		want   string // the beginning of the error; empty: none
	}{
		{"nodes replace /var", Config{Nodes: 1, Bin: bin, Dir: "/var/tmp/x"}, hidden("/var/tmp/x", "/var")},
		{"nodes replace /etc", Config{Nodes: 1, Bin: bin, Dir: "/etc/x"}, hidden("/etc/x", "/etc")},
		{"nodes replace /run", Config{Nodes: 1, Bin: bin, Dir: "/run/../run/x"}, hidden("/run/x", "/run")},
		{"nodes replace /opt", Config{Nodes: 1, Bin: bin, Dir: "/opt/x"}, hidden("/opt/x", "/opt")},
		{"nodes run a checkout in /opt", Config{Nodes: 1, Bin: "/opt/no-executables"}, "/opt/no-executables lacks etcd, "},
		{"nodes have their own /proc", Config{Nodes: 1, Bin: bin, Dir: "/proc/x"}, hidden("/proc/x", "/proc")},
		{"nodes have their own /sys", Config{Nodes: 1, Bin: bin, Dir: "/sys/x"}, hidden("/sys/x", "/sys")},
		{"nodes have their own /dev", Config{Nodes: 1, Bin: bin, Dir: "/dev"}, hidden("/dev", "/dev")},
		{"links are followed", Config{Nodes: 1, Bin: bin, Dir: links + "/devices"}, hidden("/dev", "/dev")},
		{"links to a directory that Start creates", Config{Nodes: 1, Bin: bin, Dir: links + "/temporary/x"}, hidden("/var/tmp/x", "/var")},
		{
			"nodes run the executables", Config{Nodes: 1, Bin: "/var/lib/no-executables"},
			"the directory of executables /var/lib/no-executables is below /var, which nodes replace with their own: choose another directory",
		},
		{"a control plane replaces nothing", Config{Bin: bin, Dir: "/var/tmp/x"}, ""},
		{"the name only begins like /var", Config{Nodes: 1, Bin: bin, Dir: "/variable"}, ""},
		{"sockets have short paths", Config{Bin: bin, Dir: "/tmp/" + strings.Repeat("x", 43)}, ""},
		{
			"sockets have too long paths", Config{Bin: bin, Dir: "/tmp/" + strings.Repeat("x", 44)},
			"the path of the run directory /tmp/" + strings.Repeat("x", 44) +
				" is 49 bytes long, but the sockets below it allow only 48: choose a shorter path",
		},
		{"addresses suffice", Config{Nodes: 100, Bin: bin, Dir: "/tmp/x"}, ""},
		{"addresses run out", Config{Nodes: 101, Bin: bin, Dir: "/tmp/x"}, "101 nodes: must be from 0 to 100"},
		{"nodes are counted", Config{Nodes: -1, Bin: bin, Dir: "/tmp/x"}, "-1 nodes: must be from 0 to 100"},
		{"nothing has been built", Config{Bin: "/no-executables", Dir: "/tmp/x"}, "/no-executables lacks etcd, "},
	} {
		_, err := tc.config.complete()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s\n got %v\nwant %s", tc.reason, err, tc.want)
		}
	}
	t.Setenv(build.DirVariable, "")
	t.Chdir(t.TempDir())
	const want = "the working directory is not inside the Akri repository: or set AKRI_K8S_BIN to the directory of executables"
	if _, err := (Config{Dir: "/tmp/x"}).complete(); err == nil || err.Error() != want {
		t.Errorf("outside the repository\n got %v\nwant %s", err, want)
	}
}

func TestDirectoriesHaveDifferentNames(t *testing.T) {
	a, b := nameOf("/tmp/a/run"), nameOf("/tmp/b/run")
	if a == b || !strings.HasPrefix(a, "akri-run-") {
		t.Errorf("got %s and %s", a, b)
	}
	if got := nameOf("/tmp/" + strings.Repeat("x", 100)); len(got) != 40+len("-123456") {
		t.Errorf("a long name: got %s", got)
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
