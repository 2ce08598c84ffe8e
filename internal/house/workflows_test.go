package house

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `)
	// usesLine matches a step that is an action, and pinned an action whose commit is fixed,
	// because tags can be moved.
	usesLine = regexp.MustCompile(`(?m)^ *(?:- )?uses: *(.*)$`)
	pinned   = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	runStep  = regexp.MustCompile(`(?m)^ *- run: (.*)$`)
)

// TestWorkflows checks that the actions of workflows are pinned, that the targets of make
// and the programs exist that they run, and that jobs end and have only the permissions that
// are named. The workflow of a release runs only when somebody releases.
func TestWorkflows(t *testing.T) {
	root := os.DirFS("../..")
	makefile, err := fs.ReadFile(root, "Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, match := range target.FindAllSubmatch(makefile, -1) {
		targets = append(targets, string(match[1]))
	}
	files, err := fs.Glob(root, ".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range usesLine.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s: name the commit and, in a comment, its version: @COMMIT # v1.2.3", file, match[1])
			}
		}
		for _, match := range runStep.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(match[1])
			if len(words) == 0 {
				t.Errorf("%s: a step runs nothing", file)
				continue
			}
			if words[0] != "make" {
				if program, err := fs.Stat(root, words[len(words)-1]); err != nil || program.Mode()&0o111 == 0 {
					t.Errorf("%s: %s: the last word must be a program of the repository", file, match[1])
				}
				continue
			}
			for _, name := range words[1:] {
				if !strings.Contains(name, "=") && !slices.Contains(targets, name) {
					t.Errorf("%s: there is no target %s in the Makefile", file, name)
				}
			}
		}
		count := func(part string) int { return strings.Count(string(text), part) }
		if jobs := count("runs-on:"); count("\npermissions:\n") != 1 || jobs == 0 || jobs != count("timeout-minutes:") ||
			count("actions/checkout@") != count("persist-credentials: false") {
			t.Errorf("%s: set permissions, timeout-minutes of each job, and persist-credentials: false of each checkout", file)
		}
	}
}
