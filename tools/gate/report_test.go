package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	stages := []stage{
		{goal: "house", ran: true, failed: true, took: 21 * time.Second, errors: [][]string{
			{"not formatted: agent/agent.go; run make fix"},
			{"DONE 12 tests, 1 failure in 1.2s"}, // the events say it better
		}},
		{goal: "test TESTFLAGS=-race", ran: true, failed: true, took: 300 * time.Second, errors: [][]string{{"DONE 3 tests, 1 failure in 300s"}}},
		{goal: "e2e"},
	}
	const want = `
=== FAILED
  house                        21 s  FAILED
  test TESTFLAGS=-race        300 s  FAILED
  e2e                           0 s  not run
--- FAIL: make house
    not formatted: agent/agent.go; run make fix
--- FAIL: sample/assertion.TestTable/bad
    x_test.go:3: got 1, want 2
1 passed, 2 failed, 0 skipped
`
	if got := newReport(stages, readFile(t, "assertion")).String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestFlaky checks that a few flaky tests pass, and are named.
func TestFlaky(t *testing.T) {
	stages := []stage{{goal: "test", ran: true}}
	r := newReport(stages, readFile(t, "flaky"))
	if want := "\nflaky: sample/flaky.TestSometimes/case: x_test.go:3: too slow\n"; !r.passed() || !strings.Contains(r.String(), want) {
		t.Errorf("passed: %v; the report does not contain %q:\n%s", r.passed(), want, r)
	}
	for _, name := range []string{"nameless", "violation"} {
		if r := newReport(stages, readFile(t, name)); r.passed() {
			t.Errorf("%s passed because it was repeated", name)
		}
	}
	many := newResults()
	for i := range maxFlaky + 1 {
		for _, action := range []string{"fail", "pass"} {
			many.add("e2e.json", event{Action: "run", Package: "p", Test: fmt.Sprint("Test", i)})
			many.add("e2e.json", event{Action: action, Package: "p", Test: fmt.Sprint("Test", i)})
		}
	}
	if newReport(stages, many).passed() {
		t.Errorf("%d flaky tests passed", maxFlaky+1)
	}
}

// TestReportLength checks that a report fits on a screen, whatever fails.
func TestReportLength(t *testing.T) {
	tests := newResults()
	for i := range 20 {
		tests.add("unit.json", event{Action: "fail", Package: "p", Test: fmt.Sprintf("Test%02d", i)})
	}
	stages := []stage{{goal: "house", ran: true, failed: true, errors: [][]string{{"generating", "generated files are stale"}}}}
	if want := "\n    generated files are stale\n"; !strings.Contains(newReport(stages, tests).String(), want) {
		t.Errorf("with many failures, the report does not say why the stage failed:\n%s", newReport(stages, tests))
	}
	for failures := range 60 {
		tests := newResults()
		for i := range failures {
			name := fmt.Sprintf("Test%02d", i)
			tests.add("unit.json", event{Action: "run", Package: "p", Test: name})
			for range 10 {
				tests.add("unit.json", event{Action: "output", Package: "p", Test: name, Output: "an error\n"})
			}
			tests.add("unit.json", event{Action: "fail", Package: "p", Test: name})
			tests.add("unit.json", event{Action: "run", Package: "q", Test: name})
			tests.add("unit.json", event{Action: "fail", Package: "q", Test: name})
			tests.add("unit.json", event{Action: "pass", Package: "q", Test: name})
		}
		text := newReport(make([]stage, 8), tests).String()
		if lines := strings.Count(strings.TrimSpace(text), "\n") + 1; lines > maxReport {
			t.Fatalf("%d failures: the report has %d lines:\n%s", failures, lines, text)
		}
		if failures > 0 && !strings.Contains(text, "--- FAIL: p.Test00\n") {
			t.Fatalf("%d failures: the first is not named:\n%s", failures, text)
		}
	}
}

const makefile = `
.PHONY: good bad both needed late
good:
	@echo "all is good"
bad:
	@echo "widget.go:3: too long"; exit 1
both: bad worse
worse:
	@echo "widget.go:9: stale"; exit 3
needed: bad
late:
	@touch late
`

func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("Makefile", []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		goals, stopAfter []string
		ok, late         bool // late: the stage after the others ran
		want             []string
	}{
		"all stages pass": {goals: []string{"good X=1"}, ok: true, late: true, want: []string{"=== good X=1: passed after 0 s", "=== passed"}},
		"a failed stage does not stop the next": {goals: []string{"bad"}, late: true, want: []string{
			"=== bad: FAILED after 0 s", "--- FAIL: make bad\n    widget.go:3: too long\n",
		}},
		"both mistakes of a stage are named": {goals: []string{"both"}, late: true, want: []string{
			"--- FAIL: make both\n    widget.go:3: too long\n", "--- FAIL: make both\n    widget.go:9: stale\n",
		}},
		"nothing can be built":   {goals: []string{"good", "needed"}, stopAfter: []string{"needed"}, want: []string{"not run"}},
		"there is no such stage": {goals: []string{"none"}, late: true, want: []string{"No rule to make target 'none'"}},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove("late")
			var out bytes.Buffer
			ok, err := run(&out, append(test.goals, "late"), test.stopAfter)
			if err != nil || ok != test.ok {
				t.Errorf("passed: %v, %v", ok, err)
			}
			if _, err := os.Stat("late"); (err == nil) != test.late {
				t.Errorf("the stage after the others ran: %v, want %v", err == nil, test.late)
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output does not contain %q:\n%s", want, out.String())
				}
			}
		})
	}
}
