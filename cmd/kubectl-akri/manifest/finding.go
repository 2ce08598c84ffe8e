package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

// Finding is a problem in a file.
type Finding struct {
	At      source.Position // without File: about all files
	Warning bool
	// For is what was rendered, as in Instance cam-1; empty if nothing was.
	For string
	// Place is the path of the field in the object.
	Place string
	// Template is the template that the field is in, as in instanceBrokerResources[2];
	// empty outside the lists of templates.
	Template string
	Cause    string
	Hint     string
}

// write prints a finding as a compiler does: the place, the cause, the line of the
// file with a mark below it, and the remedy.
func (f Finding) write(out io.Writer, all Files) {
	severity := "error"
	if f.Warning {
		severity = "warning"
	}
	place := ""
	if f.At.File != "" {
		place = f.At.String() + ": "
	}
	fmt.Fprintf(out, "%s%s: %s\n", place, severity, f.Cause)
	number := fmt.Sprint(f.At.Line)
	margin := strings.Repeat(" ", len(number)+2)
	if lines := all.lines(f.At.File); 0 < f.At.Line && f.At.Line <= len(lines) {
		line, mark := excerpt(strings.TrimRight(lines[f.At.Line-1], "\r"), f.At.Column)
		fmt.Fprintf(out, "%s|\n %s | %s\n%s|%s^\n", margin, number, line, margin, mark)
	}
	if in := strings.TrimPrefix(f.For+", "+f.Place, ", "); f.Place != "" {
		fmt.Fprintf(out, "%s= in %s\n", margin, in)
	}
	if f.Hint != "" {
		fmt.Fprintf(out, "%s= help: %s\n", margin, strings.ReplaceAll(f.Hint, "\n", "\n"+margin+"    "))
	}
	fmt.Fprintln(out)
}

// maxExcerpt is how many characters of a line are shown.
const maxExcerpt = 100

// excerpt returns the part of a line around a column, and the space before the mark
// below it.
func excerpt(line string, column int) (shown, space string) {
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	from := 0
	if len(runes) > maxExcerpt && at > maxExcerpt/2 {
		from = at - maxExcerpt/2
	}
	to := min(from+maxExcerpt, len(runes))
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
		if r != '\t' { // a tab is equally wide on both lines
			r = ' '
		}
		before.WriteRune(r)
	}
	return shown, before.String()
}

// fromError returns the finding for an error of package cases.
func fromError(err error) Finding {
	problem, ok := errors.AsType[cases.Mistake](err)
	if !ok {
		return Finding{Cause: err.Error()}
	}
	diagnostic := problem.Diagnostic
	f := Finding{
		At: problem.At, For: problem.For, Place: diagnostic.Field.Below(problem.Template),
		Cause: diagnostic.Cause.Error(), Hint: diagnostic.Hint,
	}
	if origin := diagnostic.Origin.Template(); problem.Template == diagnostic.Origin.String() && origin.Index >= 0 {
		f.Template = origin.String()
	}
	return f
}

// FromErrors returns the findings for errors of package cases.
func FromErrors(errs []error) []Finding {
	findings := make([]Finding, len(errs))
	for i, err := range errs {
		findings[i] = fromError(err)
	}
	return findings
}

// fromBroken returns the finding for a file that cannot be parsed.
func fromBroken(f *File) Finding {
	found := Finding{
		At:    source.Position{File: f.Name, Line: 1, Column: 1},
		Cause: f.Err.Error(),
		Hint:  "correct the YAML: check indentation, colons and quotes near this line",
	}
	if syntax, ok := errors.AsType[*source.SyntaxError](f.Err); ok {
		found.At.Line, found.Cause = max(syntax.Line, 1), syntax.Err.Error()
	}
	if strings.Contains(found.Cause, "mapping values are not allowed") || strings.Contains(found.Cause, "did not find expected") {
		found.Hint += "; quote a value that starts with {{ or contains a colon"
	}
	switch {
	case strings.Contains(found.Cause, "already set in map"), strings.Contains(found.Cause, "already defined"):
		found.Hint = "the key is set twice: remove one"
	case errors.Is(f.Err, source.ErrNotObject):
		found.Hint = "a document starts with apiVersion: and kind:"
	case strings.Contains(found.Cause, "invalid map key"):
		found.Cause, found.Hint = "YAML reads {{ as the start of a map", `quote the expression: "{{ … }}"`
		found.At.Line = bareExpression(f.Data)
	}
	if lines := strings.Split(string(f.Data), "\n"); found.At.Line <= len(lines) {
		text := lines[found.At.Line-1]
		found.At.Column = utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " ")) + 1
	}
	return found
}

var bare = regexp.MustCompile(`^\s*(- )*([^"'#]*: )?\{\{`)

// bareExpression returns the number of the first line with an unquoted expression.
func bareExpression(data []byte) int {
	for i, line := range strings.Split(string(data), "\n") {
		if bare.MatchString(line) {
			return i + 1
		}
	}
	return 1
}

// Sort sorts findings by place. The sort is stable.
func Sort(findings []Finding, all Files) []Finding {
	order := make(map[string]int, len(all))
	for i, f := range all {
		order[f.Name] = i
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(order[a.At.File], order[b.At.File]),
			cmp.Compare(a.At.Line, b.At.Line),
			cmp.Compare(a.At.Column, b.At.Column),
		)
	})
	return findings
}

// Show prints findings and returns how many of them are errors.
func Show(out io.Writer, findings []Finding, all Files) int {
	count := 0
	for _, f := range findings {
		f.write(out, all)
		if !f.Warning {
			count++
		}
	}
	return count
}

// Count returns a number with its noun, such as "2 mistakes".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
