package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// eventsDir is where the targets write the events of their tests.
const eventsDir = "bin/tests"

func main() {
	stopAfter := flag.String("stop-after", "", "comma-separated `stages` whose failure ends the run, because nothing can be built")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: gate [-stop-after STAGE,STAGE] STAGE...")
		os.Exit(2)
	}
	ok, err := run(os.Stdout, flag.Args(), strings.Split(*stopAfter, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// run runs the stages, writes their output and the report to out, and reports
// whether the check passed.
func run(out io.Writer, goals, stopAfter []string) (ok bool, err error) {
	if err := os.RemoveAll(eventsDir); err != nil {
		return false, err
	}
	stages := make([]stage, len(goals))
	stopped := false
	for i, goal := range goals {
		stages[i].goal = goal
		if stopped {
			continue
		}
		stages[i].run(out)
		stopped = stages[i].failed && slices.Contains(stopAfter, stages[i].name())
	}
	tests, err := readEvents()
	if err != nil {
		return false, err
	}
	r := newReport(stages, tests)
	fmt.Fprint(out, r)
	return r.passed(), nil
}

// readEvents reads the events of all tests that ran.
func readEvents() (*results, error) {
	files, err := filepath.Glob(filepath.Join(eventsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	tests := newResults()
	for _, file := range files { // sorted by name
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		err = tests.read(file, f)
		f.Close()
		if err != nil {
			return nil, err
		}
	}
	return tests, nil
}

// stage is a run of a make target.
type stage struct {
	goal   string // the target and its variables
	ran    bool
	failed bool
	took   time.Duration
	errors [][]string // for each failed recipe, the lines that explain why
}

// name returns the target.
func (s *stage) name() string {
	name, _, _ := strings.Cut(s.goal, " ")
	return name
}

// run runs make, and copies its output to out. Make continues with other targets when
// one has failed.
func (s *stage) run(out io.Writer) {
	fmt.Fprintf(out, "\n=== %s\n", s.goal)
	var tail excerpt
	// Without the flags of the make that started this program, such as a job server.
	command := exec.Command("make", append([]string{"--keep-going", "--no-print-directory"}, strings.Fields(s.goal)...)...)
	command.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	command.Stdout = io.MultiWriter(out, &tail)
	command.Stderr = command.Stdout
	began := time.Now()
	err := command.Run()
	s.ran, s.failed, s.took = true, err != nil, time.Since(began)
	state := "passed"
	if s.failed {
		state, s.errors = "FAILED", tail.errors()
	}
	fmt.Fprintf(out, "=== %s: %s after %.0f s\n", s.goal, state, s.took.Seconds())
}
