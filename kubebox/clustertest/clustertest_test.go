package clustertest

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/kubebox/cluster"
)

func TestMain(m *testing.M) { Main(m) }

// outcome is a test that records how it ends.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper() {}

func (o *outcome) Skip(args ...any) { o.skipped = fmt.Sprint(args...); panic(o) }

func (o *outcome) Fatal(args ...any) { o.failed = fmt.Sprint(args...); panic(o) }

func (o *outcome) Fatalf(format string, args ...any) { o.Fatal(fmt.Sprintf(format, args...)) }

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
