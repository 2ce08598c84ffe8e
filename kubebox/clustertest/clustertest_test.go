package clustertest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/cluster"
)

func TestMain(m *testing.M) { Main(m) }

// outcome is a test that records how it ends.
type outcome struct {
	testing.TB
	skipped, failed string
	errors          []string
}

func (o *outcome) Helper() {}

func (o *outcome) Skip(args ...any) { o.skipped = fmt.Sprint(args...); panic(o) }

func (o *outcome) Fatal(args ...any) { o.failed = fmt.Sprint(args...); panic(o) }

func (o *outcome) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

func (o *outcome) Errorf(format string, args ...any) {
	o.errors = append(o.errors, fmt.Sprintf(format, args...))
}

func (o *outcome) Failed() bool { return false }

// outcomeOf returns the outcome of a test.
func outcomeOf(t *testing.T, test func(testing.TB)) *outcome {
	t.Helper()
	o := &outcome{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != o {
				panic(p)
			}
		}()
		test(o)
	}()
	return o
}

func TestMissingExecutablesSkipTheTest(t *testing.T) {
	none := cluster.Config{Bin: "/no-executables"}
	start := func(t testing.TB) { Start(t, none) }
	t.Setenv(RequiredVariable, "")
	const want = "/no-executables lacks etcd, "
	o := outcomeOf(t, start)
	if !strings.HasPrefix(o.skipped, want) || !strings.Contains(o.skipped, ": run make kubernetes") || o.failed != "" {
		t.Errorf("the test was skipped with %q and failed with %q", o.skipped, o.failed)
	}
	none.Nodes = 101
	if o := outcomeOf(t, start); o.skipped == "" && o.failed != "101 nodes: must be from 0 to 100" {
		t.Errorf("a mistake of the test: it was skipped with %q and failed with %q", o.skipped, o.failed)
	}
	none.Nodes = 0
	t.Setenv(RequiredVariable, "1")
	if o := outcomeOf(t, start); o.skipped != "" || !strings.HasPrefix(o.failed, want) {
		t.Errorf("a test that must not be skipped: skipped with %q, failed with %q", o.skipped, o.failed)
	}
}

// TestClusterThatFailsFailsTheTest opens a cluster whose supervisor is this process.
func TestClusterThatFailsFailsTheTest(t *testing.T) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	record, err := json.Marshal(map[string]any{"Pid": os.Getpid(), "StartTime": strings.Fields(after)[19]})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	assert := func(reason string, want ...string) {
		t.Helper()
		o := outcomeOf(t, func(t testing.TB) { report(t, c) })
		if !slices.EqualFunc(o.errors, want, strings.HasPrefix) {
			t.Errorf("%s: the errors are %q, want %q", reason, o.errors, want)
		}
	}
	assert("a cluster that does not respond", "the cluster does not respond: ")
	listener, err := net.Listen("unixpacket", filepath.Join(dir, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 1000))
		const components = `{"components": [{"name": "etcd", "state": "running"}, {"name": "coredns", "cause": "exited with status 1"}]}`
		_, _ = conn.Write([]byte(components))
	}()
	assert("a component that exited by itself", "coredns exited with status 1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	assert("a cluster that the test has stopped")
}
