package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gotest.tools/gotestsum/testjson"
)

// eventsDir is where gotestsum writes the events of tests, a file for each target.
const eventsDir = "bin/tests"

// tests are the results of the tests of a run. A flaky test failed, and passed when gotestsum
// repeated it. Gotestsum repeats nothing after a data race, a panic such as that of the time
// limit, or too many failures. That a repeated test passes says nothing if a package failed
// outside of its tests, or if a model found a violation, so these are failures here.
type tests struct {
	failures, flaky []failure
	counts          string
}

// violation begins the message of a model, see CONTRIBUTING.md.
const violation = "violation: "

// framing matches lines that say nothing about a failure.
var framing = regexp.MustCompile(`^(=== |--- |PASS|FAIL|ok  |=+$|exit status |coverage: |$)`)

func readTests() (all tests, err error) {
	files, err := filepath.Glob(filepath.Join(eventsDir, "*.json"))
	if err != nil {
		return tests{}, err
	}
	passed, skipped := 0, 0
	for _, name := range files { // sorted
		file, err := os.Open(name)
		if err != nil {
			return tests{}, err
		}
		var outside failedPackages
		execution, err := testjson.ScanTestOutput(testjson.ScanConfig{Stdout: file, Handler: &outside})
		file.Close()
		if err != nil {
			return tests{}, fmt.Errorf("%s: %w", name, err)
		}
		all.failures = append(all.failures, outside...)
		for _, test := range testjson.FilterFailedUnique(execution.Failed()) {
			p := execution.Package(test.Package)
			f := failure{short(test.Package) + "." + test.Test.Name(), explain(p.OutputLines(test))}
			switch {
			case test.Test == "": // the package, see above
			case slices.ContainsFunc(all.failures, func(other failure) bool { return other.name == f.name }): // it failed twice
			case hasPassed(p, test) && !slices.ContainsFunc(f.why, isViolation):
				all.flaky = append(all.flaky, f)
			default:
				all.failures = append(all.failures, f)
			}
		}
		for _, name := range execution.Packages() {
			names := map[testjson.TestName]bool{} // a case may pass twice
			for _, test := range execution.Package(name).Passed {
				names[test.Test] = true
			}
			passed += len(names)
		}
		skipped += len(execution.Skipped())
	}
	all.counts = fmt.Sprintf("%d passed, %d failed, %d skipped", passed, len(all.failures), skipped)
	return all, nil
}

// failedPackages are packages that failed although none of their tests did, as when they
// cannot be built or leave a goroutine behind. It handles events, because a package whose
// tests were repeated may have passed in the end.
type failedPackages []failure

func (f *failedPackages) Event(event testjson.TestEvent, execution *testjson.Execution) error {
	if p := execution.Package(event.Package); event.PackageEvent() && event.Action == testjson.ActionFail && p.TestMainFailed() {
		why := explain(append(p.OutputLines(testjson.TestCase{}), execution.Errors()...))
		*f = append(*f, failure{short(event.Package), why})
	}
	return nil
}

// Err is called for errors that are no events: gotestsum has printed them.
func (f *failedPackages) Err(string) error { return nil }

// hasPassed reports whether the test, which failed, passed too, with the test that it is part of.
func hasPassed(p *testjson.Package, failed testjson.TestCase) bool {
	root, _ := failed.Test.Split()
	return slices.ContainsFunc(p.Passed, func(test testjson.TestCase) bool { return test.Test.Name() == root })
}

func short(name string) string { return strings.TrimPrefix(name, "akri.sh/akri/") }

func isViolation(line string) bool { return strings.Contains(line, violation) }

// explain returns the lines of an output that explain a failure, from a violation on.
func explain(output []string) (lines []string) {
	for _, line := range output {
		if line = strings.TrimSpace(line); !framing.MatchString(line) {
			lines = append(lines, line)
		}
	}
	if at := slices.IndexFunc(lines, isViolation); at >= 0 {
		return lines[at:]
	}
	return lines
}
