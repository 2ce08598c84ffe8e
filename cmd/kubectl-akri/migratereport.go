package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"akri.sh/akri/internal/finding"
)

// migrationReport says what a move to this Akri does to a cluster.
type migrationReport struct {
	Installation installation      `json:"installation"`
	Findings     []finding.Finding `json:"findings"` // the worst first
	Objects      []objectOutcome   `json:"objects"`
	Unread       []string          `json:"unread,omitempty"` // for lack of permission
}

// installation is the original Akri in a cluster.
type installation struct {
	Namespace string   `json:"namespace,omitempty"`
	Release   string   `json:"release,omitempty"` // of Helm
	Chart     string   `json:"chart,omitempty"`
	Workloads []string `json:"workloads"` // KIND NAMESPACE/NAME
	Handlers  []string `json:"handlers"`
}

// titles say what the levels of findings mean here.
var titles = [...]string{
	finding.Error: "Solve before the move", finding.Warning: "Works differently afterwards", finding.Note: "Notes",
}

// objectOutcome is what happens to one object or slot: kept, created, deleted, freed, left
// or rejected.
type objectOutcome struct {
	Configuration string `json:"configuration"` // NAMESPACE/NAME
	Object        string `json:"object"`        // KIND NAME
	Outcome       string `json:"outcome"`
	Detail        string `json:"detail,omitempty"`
}

// add adds a finding, once.
func (r *migrationReport) add(level finding.Level, place, remedy, cause string, arguments ...any) {
	mistake := finding.Mistake{Path: place, Cause: fmt.Sprintf(cause, arguments...), Hint: remedy}
	if one := (finding.Finding{Level: level, Mistake: mistake}); !slices.Contains(r.Findings, one) {
		r.Findings = append(r.Findings, one)
	}
}

// count returns the number of findings of a level.
func (r *migrationReport) count(level finding.Level) int {
	count := 0
	for _, one := range r.Findings {
		if one.Level == level {
			count++
		}
	}
	return count
}

// print writes the report for people.
func (r *migrationReport) print(out io.Writer) error {
	var text strings.Builder
	r.Installation.print(&text)
	for _, what := range r.Unread {
		fmt.Fprintf(&text, "not read: %s: no permission\n", what)
	}
	for i, one := range r.Findings {
		if i == 0 || one.Level != r.Findings[i-1].Level {
			fmt.Fprintf(&text, "\n%s:\n", titles[one.Level])
		}
		fmt.Fprintf(&text, "  %s: %s\n", one.Path, one.Cause)
		if one.Hint != "" {
			fmt.Fprintf(&text, "    → %s\n", one.Hint)
		}
	}
	var lines strings.Builder
	table := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, object := range r.Objects {
		name, indent := object.Object, "    "
		if strings.HasPrefix(name, "Configuration ") {
			name, indent = "Configuration "+object.Configuration, "  "
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\n", indent, name, object.Outcome, object.Detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	text.WriteString("\nWhat happens to each object:\n")
	for line := range strings.Lines(lines.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	fmt.Fprintf(&text, "\n%d blocking, %d changed, %d notes\n", r.count(finding.Error), r.count(finding.Warning), r.count(finding.Note))
	_, err := io.WriteString(out, text.String())
	return err
}

func (is installation) print(text *strings.Builder) {
	if len(is.Workloads) == 0 {
		text.WriteString("No installation of the original Akri was found.\n")
		return
	}
	fmt.Fprintf(text, "Akri in namespace %s", is.Namespace)
	if is.Release != "" {
		fmt.Fprintf(text, ", Helm release %s (chart %s)", is.Release, is.Chart)
	}
	fmt.Fprintf(text, "\n  %s\n", strings.Join(is.Workloads, "\n  "))
	if len(is.Handlers) > 0 {
		fmt.Fprintf(text, "  handlers: %s\n", strings.Join(is.Handlers, ", "))
	}
}
