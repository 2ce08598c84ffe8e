package migration

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Print writes a report for people.
func (r *Report) Print(out io.Writer) error {
	var text strings.Builder
	r.Installation.print(&text)
	for _, unread := range r.Unread {
		fmt.Fprintf(&text, "not read: %s: %s\n", unread.What, unread.Why)
	}
	for _, severity := range []Severity{Blocks, Changes, Note} {
		if r.Count(severity) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n%s:\n", titles[severity])
		for _, finding := range r.Findings {
			if finding.Severity == severity {
				fmt.Fprintf(&text, "  %s: %s\n", finding.Place, finding.Cause)
				if finding.Hint != "" {
					fmt.Fprintf(&text, "    → %s\n", finding.Hint)
				}
			}
		}
	}
	if err := r.printObjects(&text); err != nil {
		return err
	}
	fmt.Fprintf(&text, "\n%d blocking, %d changed, %d notes\n", r.Count(Blocks), r.Count(Changes), r.Count(Note))
	_, err := io.WriteString(out, text.String())
	return err
}

var titles = map[Severity]string{
	Blocks:  "Settle before the move",
	Changes: "Works differently afterwards",
	Note:    "Notes",
}

func (is Installation) print(text *strings.Builder) {
	if len(is.Workloads) == 0 && is.Release == "" {
		text.WriteString("No installation of the original Akri was found.\n")
		return
	}
	fmt.Fprintf(text, "Akri %s in namespace %s", cmp.Or(is.Version, "of an unknown version"), is.Namespace)
	if is.Release != "" {
		fmt.Fprintf(text, ", Helm release %s (chart %s)", is.Release, is.Chart)
	}
	text.WriteString("\n")
	for _, w := range is.Workloads {
		fmt.Fprintf(text, "  %s %s/%s\n", strings.TrimSuffix(w.Resource, "s.apps"), w.Namespace, w.Name)
	}
	if len(is.Handlers) > 0 {
		fmt.Fprintf(text, "  handlers: %s\n", strings.Join(is.Handlers, ", "))
	}
	if is.Running == 0 {
		text.WriteString("  its controller and agents do not run\n")
	}
}

// printObjects writes a table of all objects with what happens to them.
func (r *Report) printObjects(text *strings.Builder) error {
	if len(r.Objects) == 0 {
		text.WriteString("\nNo Configurations.\n")
		return nil
	}
	text.WriteString("\nWhat happens to each object:\n")
	var lines strings.Builder
	table := tabwriter.NewWriter(&lines, 0, 0, 2, ' ', 0)
	for _, object := range r.Objects {
		name, indent := object.Object, "    "
		if kind, _, _ := strings.Cut(name, " "); kind == "Configuration" {
			name, indent = "Configuration "+object.Configuration, "  "
		}
		fmt.Fprintf(table, "%s%s\t%s\t%s\n", indent, name, object.Outcome, object.Detail)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(lines.String()) {
		text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return nil
}
