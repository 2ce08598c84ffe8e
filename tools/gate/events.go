package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of "go test -json". See "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Output      string
	FailedBuild string // of a package that could not be built: its ImportPath
}

// results are the results of the tests of a run. A test that was repeated has several.
type results struct {
	packages map[packageRun]*packageResult
	builds   map[string][]string // output of the compiler, by ImportPath
}

// packageRun identifies the tests of a package in one file of events. Several targets
// may run the same tests, with other flags.
type packageRun struct{ name, file string }

type packageResult struct {
	name string
	// nameless counts the runs in which the package failed, but none of its tests.
	nameless    int
	failedTests int // in the current run
	output      output
	tests       map[string]*testResult
	failedBuild string
}

type testResult struct {
	name    string
	running bool
	failed  int    // how many times it failed
	last    string // the last result: pass, fail or skip
	output  output // of the first failure; of the current run before that
}

func newResults() *results {
	return &results{packages: map[packageRun]*packageResult{}, builds: map[string][]string{}}
}

// read adds the events of a file.
func (r *results) read(name string, content io.Reader) error {
	lines := bufio.NewReader(content)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("%s: %.100q is not an event: %w", name, line, err)
			}
			r.add(name, e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *results) add(file string, e event) {
	if e.Action == "build-output" {
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	run := packageRun{e.Package, file}
	p := r.packages[run]
	if p == nil {
		p = &packageResult{name: e.Package, tests: map[string]*testResult{}}
		r.packages[run] = p
	}
	if e.Test == "" {
		p.add(e)
		return
	}
	t := p.tests[e.Test]
	if t == nil {
		t = &testResult{name: e.Test}
		p.tests[e.Test] = t
	}
	if t.add(e); e.Action == "fail" {
		p.failedTests++
	}
}

// add adds an event of the package itself. The tests that run when it fails have
// failed too, such as one that hangs until the time limit.
func (p *packageResult) add(e event) {
	switch e.Action {
	case "output":
		p.output.add(e.Output)
	case "fail":
		p.failedBuild = e.FailedBuild
		for _, t := range p.tests {
			if t.running {
				t.add(event{Action: "fail"})
				p.failedTests++
			}
		}
		if p.failedTests == 0 {
			p.nameless++
		}
		p.failedTests = 0
	}
}

func (t *testResult) add(e event) {
	switch e.Action {
	case "run":
		t.running = true
		if t.failed == 0 {
			t.output = output{}
		}
	case "output":
		if t.failed == 0 {
			t.output.add(e.Output)
		}
	case "pass", "skip":
		t.running, t.last = false, e.Action
	case "fail":
		t.running, t.last = false, e.Action
		t.failed++
	}
}

// maxOutput is how many lines of a test's output are kept.
const maxOutput = 100

// output is what a test or package printed: its first lines, and the lines from the
// first one that says why it must not be repeated.
type output struct {
	lines []string
	grave []string
}

// grave matches failures that are never forgiven, even if the test then passes: a
// data race, a timeout, and a violation that a model found.
var grave = regexp.MustCompile(`WARNING: DATA RACE|panic: test timed out after|\bviolation: `)

// noise matches lines that say nothing about a failure.
var noise = regexp.MustCompile(`^\s*(=== |--- |PASS|FAIL|ok  |=+$|exit status |coverage: )`)

func (o *output) add(text string) {
	text = shorten(text)
	if strings.TrimSpace(text) == "" || noise.MatchString(text) {
		return
	}
	if len(o.lines) < maxOutput {
		o.lines = append(o.lines, text)
	}
	if (len(o.grave) > 0 || grave.MatchString(text)) && len(o.grave) < maxOutput {
		o.grave = append(o.grave, text)
	}
}

// first returns the lines that explain the failure best.
func (o *output) first() []string {
	if len(o.grave) > 0 {
		return o.grave
	}
	return o.lines
}

// failure is something that failed.
type failure struct {
	name      string // PACKAGE.TEST, or PACKAGE if it failed outside of its tests
	why       []string
	lastFirst bool // the last lines of why say most, not the first
	grave     bool
	flaky     bool // it passed when it was repeated
}

// modulePrefix is left out of the names of packages.
const modulePrefix = "akri.sh/akri/"

// failures returns the tests and packages that failed: grave failures first, then by
// name.
func (r *results) failures() []failure {
	var all []failure
	for _, p := range r.packages {
		all = append(all, p.failures(r.builds)...)
	}
	slices.SortStableFunc(all, func(a, b failure) int {
		if a.grave != b.grave {
			return map[bool]int{true: -1, false: 1}[a.grave]
		}
		return cmp.Compare(a.name, b.name)
	})
	return all
}

func (p *packageResult) failures(builds map[string][]string) (all []failure) {
	short := strings.TrimPrefix(p.name, modulePrefix)
	graveOutput := len(p.output.grave) > 0
	for name, t := range p.tests {
		if t.failed == 0 || p.explained(t) {
			continue
		}
		f := failure{name: short + "." + name, why: t.output.first(), grave: graveOutput || len(t.output.grave) > 0}
		f.flaky = p.root(t).last == "pass" && !f.grave
		all = append(all, f)
	}
	if p.nameless > 0 || graveOutput && len(all) == 0 {
		why := p.output.first()
		if p.failedBuild != "" {
			why = lines(builds[p.failedBuild])
		}
		all = append(all, failure{name: short, why: why, grave: graveOutput})
	}
	return all
}

// explained reports whether a subtest of t failed, which says more.
func (p *packageResult) explained(t *testResult) bool {
	for name, other := range p.tests {
		if strings.HasPrefix(name, t.name+"/") && other.failed > 0 {
			return true
		}
	}
	return false
}

// root returns the test that t is a subtest of, at any depth, or t itself. Only whole
// tests are repeated.
func (p *packageResult) root(t *testResult) *testResult {
	name, _, _ := strings.Cut(t.name, "/")
	if root := p.tests[name]; root != nil {
		return root
	}
	return t
}

// lines splits the output of the compiler.
func lines(o []string) (all []string) {
	for line := range strings.Lines(strings.Join(o, "")) {
		if line = shorten(strings.TrimRight(line, "\n")); strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "# ") {
			all = append(all, line)
		}
	}
	return all
}

// counts returns how many tests passed, failed and were skipped, by their last result.
func (r *results) counts() (passed, failed, skipped int) {
	for _, p := range r.packages {
		for _, t := range p.tests {
			switch t.last {
			case "pass":
				passed++
			case "skip":
				skipped++
			default:
				failed++
			}
		}
	}
	return passed, failed, skipped
}
