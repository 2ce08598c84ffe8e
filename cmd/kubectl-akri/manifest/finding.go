package offline

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

// finding is one thing to tell about a file.
type finding struct {
	at      source.Position // without File: about the whole
	warning bool
	field   string // where it is in the object
	cause   string
	hint    string
}

// write shows a finding as compilers do: the place, the cause, the line of the
// file with a mark, and what to do.
func (f finding) write(out io.Writer, all files) {
	severity := "error"
	if f.warning {
		severity = "warning"
	}
	place := ""
	if f.at.File != "" {
		place = f.at.String() + ": "
	}
	fmt.Fprintf(out, "%s%s: %s\n", place, severity, f.cause)
	number := fmt.Sprint(f.at.Line)
	margin := strings.Repeat(" ", len(number)+2)
	if lines := all.lines(f.at.File); 0 < f.at.Line && f.at.Line <= len(lines) {
		line, mark := excerpt(strings.TrimRight(lines[f.at.Line-1], "\r"), f.at.Column)
		fmt.Fprintf(out, "%s|\n %s | %s\n%s|%s^\n", margin, number, line, margin, mark)
	}
	if f.field != "" {
		fmt.Fprintf(out, "%s= in %s\n", margin, f.field)
	}
	if f.hint != "" {
		fmt.Fprintf(out, "%s= help: %s\n", margin, f.hint)
	}
	fmt.Fprintln(out)
}

// widest is how much of a line is shown.
const widest = 100

// excerpt is the part of a line around a column, and the space before the mark
// below it.
func excerpt(line string, column int) (shown, space string) {
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	from := 0
	if len(runes) > widest && at > widest/2 {
		from = at - widest/2
	}
	to := min(from+widest, len(runes))
	shown = string(runes[from:to])
	var before strings.Builder
	before.WriteByte(' ')
	if from > 0 {
		shown = "…" + shown
		before.WriteByte(' ')
	}
	if to < len(runes) {
		shown += "…"
	}
	for _, r := range runes[from:at] {
		if r != '\t' { // a tab is as wide below as above
			r = ' '
		}
		before.WriteRune(r)
	}
	return shown, before.String()
}

// ofError makes a finding of what package cases reports.
func ofError(err error) finding {
	problem, is := errors.AsType[cases.Problem](err)
	if !is {
		return finding{cause: err.Error()}
	}
	f := finding{at: problem.At, field: fieldOf(problem.Diagnostic), cause: problem.Diagnostic.Cause.Error(), hint: problem.Diagnostic.Hint}
	if prefix, found := strings.CutSuffix(err.Error(), problem.Error()); found && prefix != "" {
		f.field = strings.TrimSuffix(prefix, ": ") + ", " + f.field
	}
	return f
}

// fieldOf is list and field of a diagnostic.
func fieldOf(d templating.Diagnostic) string {
	field := d.Field.String()
	switch {
	case field == "":
		return d.List
	case d.List == "" || field[0] == '[':
		return d.List + field
	}
	return d.List + "." + field
}

func ofErrors(errs []error) []finding {
	findings := make([]finding, len(errs))
	for i, err := range errs {
		findings[i] = ofError(err)
	}
	return findings
}

// ofBroken is a finding about a file that is not YAML; its error begins with the
// file and, if known, the line.
func ofBroken(f *file) finding {
	text := strings.TrimPrefix(f.broken.Error(), f.name+":")
	found := finding{at: source.Position{File: f.name, Line: 1, Column: 1}, hint: "correct the YAML: indentation, colons and quotes near this line"}
	text = strings.TrimPrefix(strings.TrimSpace(text), "line ")
	var line int
	if n, _ := fmt.Sscanf(text, "%d:", &line); n == 1 {
		found.at.Line = line
		_, text, _ = strings.Cut(text, ":")
	}
	found.cause = strings.TrimSpace(text)
	if strings.Contains(found.cause, "mapping values are not allowed") || strings.Contains(found.cause, "did not find expected") {
		found.hint += "; a value that begins with {{ or holds a colon needs quotes"
	}
	switch {
	case strings.Contains(found.cause, "already set in map"), strings.Contains(found.cause, "already defined"):
		found.hint = "a key is written twice: remove one"
	case strings.Contains(found.cause, "not an object"):
		found.hint = "a document begins with apiVersion: and kind:"
	case strings.Contains(found.cause, "invalid map key"):
		found.cause, found.hint = "YAML takes {{ for the beginning of a map", `put the expression into quotes: "{{ … }}"`
		found.at.Line = bareExpression(f.data)
	}
	if lines := strings.Split(string(f.data), "\n"); found.at.Line <= len(lines) {
		text := lines[found.at.Line-1]
		found.at.Column = utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " ")) + 1
	}
	return found
}

var bare = regexp.MustCompile(`^\s*(- )*([^"'#]*: )?\{\{`)

// bareExpression is the first line where an expression stands without quotes.
func bareExpression(data []byte) int {
	for i, line := range strings.Split(string(data), "\n") {
		if bare.MatchString(line) {
			return i + 1
		}
	}
	return 1
}

// ordered sorts findings by place, keeping those at the same place in order.
func ordered(findings []finding, all files) []finding {
	order := make(map[string]int, len(all))
	for i, f := range all {
		order[f.name] = i
	}
	slices.SortStableFunc(findings, func(a, b finding) int {
		return cmp.Or(cmp.Compare(order[a.at.File], order[b.at.File]), cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	return findings
}

// show writes findings and tells how many of them are errors.
func show(out io.Writer, findings []finding, all files) int {
	count := 0
	for _, f := range findings {
		f.write(out, all)
		if !f.warning {
			count++
		}
	}
	return count
}
