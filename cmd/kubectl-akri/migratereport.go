package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// migrationReport says what a move to this Akri does to a cluster.
type migrationReport struct {
	Installation installation    `json:"installation"`
	Findings     []finding       `json:"findings"` // the worst first
	Objects      []objectOutcome `json:"objects"`
	Unread       []string        `json:"unread,omitempty"` // for lack of permission
}

// installation is the original Akri in a cluster.
type installation struct {
	Namespace string   `json:"namespace,omitempty"`
	Release   string   `json:"release,omitempty"` // of Helm
	Chart     string   `json:"chart,omitempty"`
	Workloads []string `json:"workloads"` // KIND NAMESPACE/NAME
	Handlers  []string `json:"handlers"`
}

// severity is how much a finding matters.
type severity string

const (
	blocks  severity = "blocks"  // it has to be settled before the move
	changes severity = "changes" // it works differently afterwards
	note    severity = "note"    // it is good to know
)

// finding is something that the operator should know before the move.
type finding struct {
	Severity severity `json:"severity"`
	Place    string   `json:"place"`
	Cause    string   `json:"cause"`
	Hint     string   `json:"hint,omitempty"`
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
func (r *migrationReport) add(s severity, place, remedy, cause string, arguments ...any) {
	if one := (finding{s, place, fmt.Sprintf(cause, arguments...), remedy}); !slices.Contains(r.Findings, one) {
		r.Findings = append(r.Findings, one)
	}
}

// count returns the number of findings of a severity.
func (r *migrationReport) count(s severity) int {
	count := 0
	for _, one := range r.Findings {
		if one.Severity == s {
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
	titles := map[severity]string{blocks: "Settle before the move", changes: "Works differently afterwards", note: "Notes"}
	var last severity
	for _, one := range r.Findings {
		if one.Severity != last {
			fmt.Fprintf(&text, "\n%s:\n", titles[one.Severity])
		}
		last = one.Severity
		fmt.Fprintf(&text, "  %s: %s\n", one.Place, one.Cause)
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
	fmt.Fprintf(&text, "\n%d blocking, %d changed, %d notes\n", r.count(blocks), r.count(changes), r.count(note))
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
