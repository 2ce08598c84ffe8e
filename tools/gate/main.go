// Gate runs stages one after the other, and says last what failed and why:
//
//	gate STAGE...
//
// A stage is a target of make, which variables without spaces may follow, as in
// "test TESTFLAGS=-race". A failed stage does not stop the next one, so one run shows all
// mistakes. The targets have gotestsum write the events of their tests to bin/tests, from
// which [readTests] takes the failures.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	ok, err := run(os.Stdout, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs the stages, writes their output and then the report to out, and reports whether
// all of them passed.
func run(out io.Writer, stages []string) (ok bool, err error) {
	if len(stages) == 0 {
		return false, errors.New("no stage given: use gate STAGE..., as in gate test")
	}
	if err := os.RemoveAll(eventsDir); err != nil {
		return false, err
	}
	ok = true
	var table strings.Builder
	var failures []failure
	var tests tests
	for _, stage := range stages {
		fmt.Fprintf(out, "\n=== %s\n", stage)
		began, state := time.Now(), "passed"
		output, failed := runMake(out, stage)
		before := len(tests.failures)
		if tests, err = readTests(); err != nil {
			return false, err
		}
		if failed != nil {
			ok, state = false, "FAILED"
			of := recipeFailures(stage, output)
			if len(tests.failures) > before { // which say more than gotestsum's last lines
				of = slices.DeleteFunc(of, func(f failure) bool { return slices.ContainsFunc(f.why, isSummary) })
			}
			failures = append(failures, of...)
		}
		line := fmt.Sprintf("  %-24s %6.0f s  %s\n", stage, time.Since(began).Seconds(), state)
		fmt.Fprint(out, line)
		table.WriteString(line)
	}
	ok = ok && len(tests.failures) == 0
	verdict := map[bool]string{true: "passed", false: "FAILED"}[ok]
	fmt.Fprintf(out, "\n=== %s\n%s", verdict, table.String())
	printFailures(out, append(failures, tests.failures...), maxReport-len(stages)-len(tests.flaky))
	for _, flaky := range tests.flaky {
		fmt.Fprintf(out, "flaky: %s: %s\n", flaky.name, strings.Join(flaky.why[:min(1, len(flaky.why))], ""))
	}
	fmt.Fprintln(out, tests.counts)
	return ok, nil
}

// runMake runs a stage without the flags of the make that started this program, such as a job
// server. Make goes on with other targets when one has failed.
func runMake(out io.Writer, stage string) (output string, err error) {
	var copied bytes.Buffer
	flags := []string{"--keep-going", "--no-print-directory", "--output-sync=target"}
	command := exec.Command("make", append(flags, strings.Fields(stage)...)...)
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	command.Stdout = io.MultiWriter(out, &copied)
	command.Stderr = command.Stdout
	err = command.Run()
	return copied.String(), err
}

const (
	// maxReport is about how many lines the failures and the table of stages have: what people
	// see of a log is its end.
	maxReport = 34
	// maxWhy is how many lines explain one failure.
	maxWhy = 6
	// maxLine is the length of such a line.
	maxLine = 200
)

// failure is a recipe or a test that failed, with the lines that explain why.
type failure struct {
	name string
	why  []string
}

// recipeFailed matches what make prints last about a recipe that failed.
var recipeFailed = regexp.MustCompile(`^make(\[\d+\])?: \*\*\* `)

// recipeFailures returns the recipes of a stage that failed, with the lines before that.
func recipeFailures(stage, output string) (all []failure) {
	var recent []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && (len(recent) == 0 || !recipeFailed.MatchString(line)) {
			recent = append(recent, line)
		}
		if recipeFailed.MatchString(line) {
			all = append(all, failure{"make " + stage, recent[max(0, len(recent)-maxWhy):]})
			recent = nil
		}
	}
	return all
}

// isSummary reports whether gotestsum printed a line at its end.
func isSummary(line string) bool { return strings.HasPrefix(line, "DONE ") }

// printFailures names the failures and explains them, in at most limit lines.
func printFailures(out io.Writer, failures []failure, limit int) {
	shown := failures[:min(len(failures), limit)]
	lines := min(maxWhy, limit/max(1, len(shown))-1)
	for _, f := range shown {
		fmt.Fprintf(out, "--- FAIL: %s\n", f.name)
		for _, line := range f.why[:max(0, min(lines, len(f.why)))] {
			fmt.Fprintf(out, "    %s\n", strings.ToValidUTF8(line[:min(maxLine, len(line))], ""))
		}
	}
	if more := len(failures) - len(shown); more > 0 {
		fmt.Fprintf(out, "and %d more: see the output of the stages\n", more)
	}
}
