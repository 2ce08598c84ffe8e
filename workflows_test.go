package akri_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what these tests read of a workflow of GitHub.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Timeout     int               `json:"timeout-minutes"`
		Permissions map[string]string `json:"permissions"`
		Steps       []struct {
			Uses string            `json:"uses"`
			Run  string            `json:"run"`
			With map[string]any    `json:"with"`
			Env  map[string]string `json:"env"`
		} `json:"steps"`
	} `json:"jobs"`
}

// mayWrite lists the write permissions of jobs.
var mayWrite = map[string][]string{
	"release.yml/release": {"attestations", "contents", "id-token", "packages"},
}

var (
	target = regexp.MustCompile(`(?m)^([a-z0-9-]+):.*## `)
	// makeStep matches a step that runs targets of make, with variables.
	makeStep = regexp.MustCompile(`^make((?: [a-z0-9-]+)+)((?: [A-Z]+=\S+)*)$`)
	// usesLine matches a step that is an action, pinned those whose commit is fixed: tags can
	// be moved.
	usesLine = regexp.MustCompile(`(?m)^ *(?:- )?uses: *(.*)$`)
	pinned   = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// TestWorkflows checks that each step of a workflow is an action at a fixed commit or
// runs existing targets of make, and that no job has more permissions than it needs.
func TestWorkflows(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range target.FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) != 2 {
		t.Fatalf("workflows: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: the permissions are %v, want contents: read: give others to a job", file, w.Permissions)
		}
		for _, match := range usesLine.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s: %s: name the commit and, in a comment, its version: @COMMIT # v1.2.3", file, match[1])
			}
		}
		for name, job := range w.Jobs {
			place := filepath.Base(file) + "/" + name
			if job.Timeout == 0 {
				t.Errorf("%s has no timeout-minutes", place)
			}
			var writes []string
			for permission, level := range job.Permissions {
				if level == "write" {
					writes = append(writes, permission)
				}
			}
			if slices.Sort(writes); !slices.Equal(writes, mayWrite[place]) {
				t.Errorf("%s may write %v, want %v", place, writes, mayWrite[place])
			}
			for _, step := range job.Steps {
				switch {
				case strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false:
					t.Errorf("%s: the checkout leaves its credentials behind: set persist-credentials: false", place)
				case step.Run != "":
					checkRun(t, place, step.Run, targets)
				}
			}
		}
	}
}

// asRoot begins a step that root runs. Without PATH, sudo sets its secure_path, in which the
// Go of actions/setup-go is not.
const asRoot = `sudo --preserve-env env "PATH=$PATH" `

func checkRun(t *testing.T, place, run string, targets map[string]bool) {
	t.Helper()
	run = strings.TrimPrefix(run, asRoot)
	if strings.HasPrefix(run, "sudo ") {
		t.Errorf("%s: %q finds another Go than that of actions/setup-go, or none: write %s…", place, run, asRoot)
		return
	}
	match := makeStep.FindStringSubmatch(run)
	if match == nil {
		t.Errorf("%s: %q does more than to run make: write a target", place, run)
		return
	}
	for name := range strings.FieldsSeq(match[1]) {
		if !targets[name] {
			t.Errorf("%s: there is no target %s in the Makefile", place, name)
		}
	}
}

// TestRequirements checks that each target that runs stages by bin/gate counts a test that
// cannot run as a failure: a stage whose tests are all skipped passes, too.
func TestRequirements(t *testing.T) {
	// make prints its variables and rules, and runs nothing.
	output, err := exec.Command("make", "--print-data-base", "--dry-run", "help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %.1000s", err, output)
	}
	database := string(output)
	rule := regexp.MustCompile(`(?m)^([a-z0-9-]+):.*\n(?:#.*\n)*(?:\t.*\n)*?\t@bin/gate `)
	required := "1"
	if os.Getuid() != 0 {
		required = "" // of tests on nodes
	}
	var found []string
	for _, match := range rule.FindAllStringSubmatch(database, -1) {
		found = append(found, match[1])
		for _, want := range []string{"AKRI_TEST_REQUIRED := 1", strings.TrimSpace("AKRI_E2E_REQUIRED := " + required)} {
			if !strings.Contains(database, "\n"+match[1]+": "+want) {
				t.Errorf("make %s does not set %s: its tests may be skipped", match[1], want)
			}
		}
	}
	if slices.Sort(found); !slices.Equal(found, []string{"full", "gate", "soak", "versions"}) {
		t.Errorf("the targets %v run stages", found)
	}
}

// TestReleaseNotes checks that a version without a section in the changelog cannot be
// released.
func TestReleaseNotes(t *testing.T) {
	run := func(version string) (string, error) {
		output, err := exec.Command("make", "--no-print-directory", "release-notes", "VERSION="+version).CombinedOutput()
		return string(output), err
	}
	if output, err := run("vUnreleased"); err != nil {
		t.Errorf("the section Unreleased: %v: %s", err, output)
	}
	notes, err := os.ReadFile("bin/release/notes.md")
	if err != nil || !strings.HasPrefix(string(notes), "## [Unreleased]\n") {
		t.Errorf("the notes are %.40q: %v", notes, err)
	}
	if output, err := run("v999.0.0"); err == nil || !strings.Contains(output, "no section [999.0.0]") {
		t.Errorf("a version without a section: %v: %s", err, output)
	}
}

// TestReleaseTargets checks what the targets that build and publish would run: nobody has
// to name the registry again when installing, and files of another version are not
// published.
func TestReleaseTargets(t *testing.T) {
	const earlier = "bin/akri-0.0.0-earlier.tgz"
	if err := os.MkdirAll("bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(earlier, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(earlier) })
	for _, test := range []struct {
		arguments string
		want      []string
	}{
		{"images PLATFORM=linux/amd64", []string{"--platform=linux/amd64"}},
		{"push PLATFORM=linux/amd64 REGISTRY=r.example/akri", []string{"--platform=linux/amd64", "push --registry=r.example/akri"}},
		{"chart REGISTRY=r.example/akri", []string{"-version='v1.2.3'", "-registry='r.example/akri'"}},
		{"push-chart REGISTRY=r.example/akri PUSH_FLAGS=--plain-http", []string{"-registry='r.example/akri'", "-push --plain-http"}},
		{"checksums REGISTRY=r.example/akri", []string{"push --registry=r.example/akri", " -push ", "bin/akri-1.2.3.tgz"}},
		{"packages", []string{"--version=v1.2.3 --revision="}},
		{"sign", []string{"cosign sign --yes < bin/release/published", "SHA256SUMS.sigstore.json"}},
		{"publish", []string{"gh release create v1.2.3 --verify-tag ", "bin/akri-1.2.3.tgz"}},
		{"publish VERSION=v1.2.3-rc.1", []string{"create v1.2.3-rc.1 --verify-tag ", "--prerelease --latest=false", "bin/akri-1.2.3-rc.1.tgz"}},
	} {
		arguments := append([]string{"--dry-run", "--no-print-directory", "VERSION=v1.2.3"}, strings.Fields(test.arguments)...)
		output, err := exec.Command("make", arguments...).CombinedOutput()
		if err != nil {
			t.Errorf("make %s: %v: %s", test.arguments, err, output)
		}
		for _, want := range test.want {
			if !strings.Contains(string(output), want) {
				t.Errorf("make %s does not run %q:\n%s", test.arguments, want, output)
			}
		}
		if strings.Contains(string(output), "--prerelease") != strings.Contains(test.arguments, "-rc") {
			t.Errorf("make %s: a release candidate, and nothing else, is a prerelease:\n%s", test.arguments, output)
		}
		if strings.Contains(string(output), "earlier") {
			t.Errorf("make %s uses a file of another version:\n%s", test.arguments, output)
		}
	}
}

// TestReleaseSteps checks that the documentation lists the steps of a release in their order.
func TestReleaseSteps(t *testing.T) {
	text, err := os.ReadFile(".github/workflows/release.yml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/releasing.md")
	if err != nil {
		t.Fatal(err)
	}
	step := regexp.MustCompile(`(?m)^    - run: (make [a-z-]+)$`)
	row := regexp.MustCompile("(?m)^\\| [a-z ]+ \\| `(make [a-z-]+)` \\|")
	list := func(pattern *regexp.Regexp, text []byte) []string {
		var targets []string
		for _, match := range pattern.FindAllSubmatch(text, -1) {
			targets = append(targets, string(match[1]))
		}
		return targets
	}
	if steps, rows := list(step, text), list(row, page); len(steps) == 0 || !slices.Equal(steps, rows) {
		t.Errorf("the workflow runs %v, docs/releasing.md lists %v", steps, rows)
	}
}
