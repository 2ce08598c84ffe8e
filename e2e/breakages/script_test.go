package breakages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// step is a heading of a script, what follows it in its line, and what is indented below.
type step struct {
	heading, argument string
	lines             []string
}

// headings are those that a script can have.
var headings = []string{"given", "break", "says", "remedy", "do", "healthy", "finally"}

// readScript returns the steps of a script.
func readScript(file string) ([]step, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var steps []step
	for number, line := range strings.Split(string(text), "\n") {
		body, indented := strings.CutPrefix(line, "    ")
		switch heading, argument, found := strings.Cut(line, ":"); {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case indented && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.lines = append(last.lines, body)
		case found && slices.Contains(headings, heading):
			steps = append(steps, step{heading: heading, argument: strings.TrimSpace(argument)})
		default:
			return nil, fmt.Errorf("%s:%d: want one of %v with a colon, or a line that is indented by four spaces: %q",
				file, number+1, headings, line)
		}
	}
	return steps, nil
}

// missing returns the first of some parts that a text does not have in this order, or has
// although it must not; "" if there is none.
func missing(text string, parts []string) string {
	rest := text
	for _, part := range parts {
		if absent, negated := strings.CutPrefix(part, "not: "); negated {
			if strings.Contains(text, absent) {
				return part
			}
			continue
		}
		_, after, found := strings.Cut(rest, part)
		if !found {
			return part
		}
		rest = after
	}
	return ""
}

// TestScripts checks, without a cluster, that scripts can be read, ask something, and have
// commands that a shell can parse.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 25 {
		t.Fatalf("there are %d scripts: %v", len(files), err)
	}
	for _, file := range files {
		steps, err := readScript(file)
		if err != nil {
			t.Error(err)
		}
		asks := func(s step) bool {
			return (s.heading == "says" || s.heading == "healthy") && strings.Contains(s.argument, "kubectl akri ")
		}
		if !slices.ContainsFunc(steps, asks) {
			t.Errorf("%s: it asks kubectl akri nothing", file)
		}
		for _, s := range steps {
			text := s.argument
			if slices.Contains([]string{"break", "remedy", "do", "finally"}, s.heading) {
				text = strings.Join(s.lines, "\n")
			}
			if out, err := exec.Command("sh", "-n", "-c", text).CombinedOutput(); s.heading != "given" && err != nil {
				t.Errorf("%s: %s: %v\n%s", file, s.heading, err, out)
			}
		}
	}
}
