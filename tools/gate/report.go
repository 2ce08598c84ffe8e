package main

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxReport is the number of lines of a report. Make adds one to them, and CI may
	// add another.
	maxReport = 38
	// maxWhy is how many lines explain one failure.
	maxWhy = 6
	// maxFlaky is how many tests of a run may pass only when repeated.
	maxFlaky = 3
)

// report is the result of a check. As text, it is a table of the stages, then what
// failed, then what was flaky, in at most maxReport lines.
type report struct {
	stages   []stage
	failures []failure
	flaky    []failure
	counts   string
}

func newReport(stages []stage, tests *results) *report {
	r := &report{stages: stages}
	var ofTests []failure
	named := map[string]bool{}
	for _, f := range tests.failures() {
		switch {
		case f.flaky:
			r.flaky = append(r.flaky, f)
		case !named[f.name]: // a test may fail in two stages
			named[f.name] = true
			ofTests = append(ofTests, f)
		}
	}
	for _, s := range stages {
		for _, why := range s.errors {
			if isOfTests := slices.ContainsFunc(why, isSummary); !isOfTests || len(ofTests) == 0 {
				r.failures = append(r.failures, failure{name: "make " + s.goal, why: why, lastFirst: true})
			}
		}
	}
	r.failures = append(r.failures, ofTests...)
	passed, failed, skipped := tests.counts()
	r.counts = fmt.Sprintf("%d passed, %d failed, %d skipped", passed, failed, skipped)
	return r
}

// isSummary reports whether gotestsum printed a line at its end. The events of the
// tests then say more than the output of the stage.
func isSummary(line string) bool { return strings.HasPrefix(line, "DONE ") }

// passed reports whether the check passed.
func (r *report) passed() bool {
	for _, s := range r.stages {
		if s.failed || !s.ran {
			return false
		}
	}
	return len(r.failures) == 0 && len(r.flaky) <= maxFlaky
}

func (r *report) String() string {
	var b strings.Builder
	verdict := "passed"
	if !r.passed() {
		verdict = "FAILED"
	}
	fmt.Fprintf(&b, "\n=== %s\n", verdict)
	for _, s := range r.stages {
		state := "passed"
		switch {
		case !s.ran:
			state = "not run"
		case s.failed:
			state = "FAILED"
		}
		fmt.Fprintf(&b, "  %-24s %6.0f s  %s\n", s.goal, s.took.Seconds(), state)
	}
	flaky := r.flakyLines()
	b.WriteString(r.failureLines(maxReport - 3 - len(r.stages) - strings.Count(flaky, "\n")))
	b.WriteString(flaky)
	b.WriteString(r.counts + "\n")
	return b.String()
}

// failureLines names the failures and explains them, in at most limit lines.
func (r *report) failureLines(limit int) string {
	if len(r.failures) == 0 {
		return ""
	}
	var b strings.Builder
	shown := r.failures
	if len(shown) > limit {
		shown = shown[:limit-1]
	}
	explained := make([]int, len(shown)) // how many lines of why are shown
	rest := limit - len(shown)
	for range maxWhy {
		for i, f := range shown {
			if rest > 0 && explained[i] < len(f.why) {
				explained[i]++
				rest--
			}
		}
	}
	for i, f := range shown {
		fmt.Fprintf(&b, "--- FAIL: %s\n", f.name)
		why := f.why[:explained[i]]
		if f.lastFirst {
			why = f.why[len(f.why)-explained[i]:]
		}
		for _, line := range why {
			fmt.Fprintf(&b, "    %s\n", strings.TrimSpace(line))
		}
	}
	if more := len(r.failures) - len(shown); more > 0 {
		fmt.Fprintf(&b, "and %d more: see the output of the stages\n", more)
	}
	return b.String()
}

// flakyLines names the tests that passed only when they were repeated.
func (r *report) flakyLines() string {
	var b strings.Builder
	for _, f := range r.flaky[:min(maxFlaky, len(r.flaky))] {
		fmt.Fprintf(&b, "flaky: %s: %s\n", f.name, strings.TrimSpace(strings.Join(f.why[:min(1, len(f.why))], "")))
	}
	if more := len(r.flaky) - maxFlaky; more > 0 {
		fmt.Fprintf(&b, "flaky: %d more; a run may have %d\n", more, maxFlaky)
	}
	return b.String()
}
