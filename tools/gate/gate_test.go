package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makefile has stages. Those with the name of a file in testdata end as gotestsum did: the
// files are the events of small packages whose failed tests it repeated once.
const makefile = `
.PHONY: good both bad worse flaky nameless violation other late
good:
	@echo "all is good"
both: bad worse
bad:
	@echo "widget.go:3: too long"; exit 1
worse:
	@echo "widget.go:9: stale"; exit 3
flaky nameless violation:
	@mkdir -p bin/tests; cp $(TESTDATA)/$@.json bin/tests/
assertion broken hang race:
	@mkdir -p bin/tests; cp $(TESTDATA)/$@.json bin/tests/; echo "DONE 3 tests, 1 failure in 2s"; exit 1
other:
	@echo "DONE 0 tests, 1 error in 2s"; exit 1
late:
	@touch late
`

func TestGate(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TESTDATA", testdata)
	for name, test := range map[string]struct {
		stages string // separated by commas
		ok     bool
		want   string // lines of the report, separated by |
	}{
		"all stages pass": {
			stages: "good X=1", ok: true,
			want: "=== passed|0 passed, 0 failed, 0 skipped",
		},
		"both mistakes of a stage": {
			stages: "both",
			want:   "=== FAILED|--- FAIL: make both|    widget.go:3: too long|    widget.go:9: stale",
		},
		"there is no such stage": {
			stages: "none",
			want:   "    make: *** No rule to make target 'none'.",
		},
		"a test and something else": {
			stages: "bad,assertion",
			want:   "--- FAIL: make bad|--- FAIL: sample/assertion.TestTable/bad|    x_test.go:3: got 1, want 2|1 passed, 1 failed, 0 skipped",
		},
		"a test, and tests that did not run": {
			stages: "assertion,other",
			want:   "--- FAIL: make other|    DONE 0 tests, 1 error in 2s|--- FAIL: sample/assertion.TestTable/bad",
		},
		"a package cannot be built": {
			stages: "broken",
			want:   "--- FAIL: sample/broken|    broken/x_test.go:3:33: undefined: undefinedFunction",
		},
		"a test hangs": {
			stages: "hang",
			want:   "--- FAIL: sample/hang|    panic: test timed out after 3s|--- FAIL: sample/hang.TestHang/inner",
		},
		"a data race": {
			stages: "race",
			want:   "--- FAIL: sample/race.TestRace|    WARNING: DATA RACE",
		},
		"a flaky test": {
			stages: "flaky", ok: true,
			want: "flaky: sample/flaky.TestSometimes/case: x_test.go:3: too slow|2 passed, 0 failed, 0 skipped",
		},
		"a package leaves a goroutine": {
			stages: "nameless",
			want:   "--- FAIL: sample/nameless|    a goroutine leaked",
		},
		"a violation, repeated": {
			stages: "violation",
			want:   "--- FAIL: sample/violation.TestModel|    x_test.go:3: violation: seed 7: I2: slot 0 is used twice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("Makefile", []byte(makefile), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			ok, err := run(&out, append(strings.Split(test.stages, ","), "late"))
			if err != nil || ok != test.ok {
				t.Errorf("passed: %v, %v", ok, err)
			}
			if _, err := os.Stat("late"); err != nil {
				t.Errorf("the stage after the others did not run: %v", err)
			}
			report := strings.Split(out.String(), "\n")
			for want := range strings.SplitSeq(test.want, "|") {
				if !slices.Contains(report, want) {
					t.Errorf("the report has no line %q:\n%s", want, out.String())
				}
			}
		})
	}
}

// TestNoStage checks that nothing is not taken for a gate that passed.
func TestNoStage(t *testing.T) {
	t.Chdir(t.TempDir())
	if ok, err := run(io.Discard, nil); ok || err == nil || !strings.Contains(err.Error(), "gate STAGE...") {
		t.Errorf("got %v, %v", ok, err)
	}
}

// TestManyFailures checks that the report fits on a screen, whatever fails.
func TestManyFailures(t *testing.T) {
	for n := range 60 {
		failures := make([]failure, n)
		for i := range failures {
			failures[i] = failure{"p.Test", []string{"a", "b", "c", "d", "e", "f", "g"}}
		}
		var out bytes.Buffer
		printFailures(&out, failures, 30)
		if lines := strings.Count(out.String(), "\n"); lines > 31 || strings.Contains(out.String(), "more") != (n > 30) {
			t.Errorf("%d failures: %d lines:\n%s", n, lines, out.String())
		}
	}
}
