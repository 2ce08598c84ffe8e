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
	makeStep = regexp.MustCompile(`(?m)^ *- run: make (.*)$`)
)

// TestWorkflows checks that the actions of workflows are pinned, and that the targets of
// make exist that they run. The workflow of a release runs only when somebody releases.
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
	steps := 0
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
		for _, match := range makeStep.FindAllStringSubmatch(string(text), -1) {
			steps++
			for name := range strings.FieldsSeq(match[1]) {
				if !strings.Contains(name, "=") && !slices.Contains(targets, name) {
					t.Errorf("%s: there is no target %s in the Makefile", file, name)
				}
			}
		}
	}
	if steps == 0 {
		t.Error("no step runs make")
	}
}
