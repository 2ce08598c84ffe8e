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

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating/source"
)

// write prints a finding as a compiler does: the place, the cause, its line of those of the
// file with a mark below it, and the remedy.
func write(out io.Writer, f finding.Finding, lines []string) {
	place := ""
	if f.File != "" {
		place = f.Position.String() + ": "
	}
	fmt.Fprintf(out, "%s%s: %s\n", place, f.Level, f.Cause)
	number := fmt.Sprint(f.Line)
	margin := strings.Repeat(" ", len(number)+2)
	if 0 < f.Line && f.Line <= len(lines) {
		line, mark := excerpt(strings.TrimRight(lines[f.Line-1], "\r"), f.Column)
		fmt.Fprintf(out, "%s|\n %s | %s\n%s|%s^\n", margin, number, line, margin, mark)
	}
	if in := strings.TrimPrefix(f.For+", "+f.Path, ", "); f.Path != "" {
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

// fromBroken returns the finding for a file that cannot be parsed.
func fromBroken(f *File) finding.Finding {
	found := finding.Finding{
		Position: finding.Position{File: f.Name, Line: 1, Column: 1},
		Mistake:  finding.Mistake{Cause: f.Err.Error(), Hint: "correct the YAML: check indentation, colons and quotes near this line"},
	}
	if syntax, ok := errors.AsType[*source.SyntaxError](f.Err); ok {
		found.Line, found.Cause = max(syntax.Line, 1), syntax.Err.Error()
	}
	if strings.Contains(found.Cause, "mapping values are not allowed") || strings.Contains(found.Cause, "did not find expected") {
		found.Hint += "; quote a value that starts with {{ or contains a colon"
	}
	switch {
	case strings.Contains(found.Cause, "already defined"):
		found.Hint = "the key is set twice: remove one"
	case errors.Is(f.Err, source.ErrNotObject):
		found.Hint = "a document starts with apiVersion: and kind:"
	case strings.Contains(found.Cause, "invalid map key"):
		found.Cause, found.Hint = "YAML reads {{ as the start of a map", `quote the expression: "{{ … }}"`
		found.Line = bareExpression(f.Data)
	}
	if lines := strings.Split(string(f.Data), "\n"); found.Line <= len(lines) {
		text := lines[found.Line-1]
		found.Column = utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeft(text, " ")) + 1
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
func Sort(findings []finding.Finding, all Files) []finding.Finding {
	order := make(map[string]int, len(all))
	for i, f := range all {
		order[f.Name] = i
	}
	slices.SortStableFunc(findings, func(a, b finding.Finding) int {
		return cmp.Or(
			cmp.Compare(order[a.File], order[b.File]),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	return findings
}

// Show prints findings as text and returns how many of them are errors.
func Show(out io.Writer, findings []finding.Finding, all Files) int {
	var lines []string
	for i, f := range findings {
		if i == 0 || f.File != findings[i-1].File {
			lines = all.lines(f.File)
		}
		write(out, f, lines)
	}
	return Errors(findings)
}

// Errors returns how many of the findings are errors.
func Errors(findings []finding.Finding) int {
	count := 0
	for _, f := range findings {
		if f.Level == finding.Error {
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
