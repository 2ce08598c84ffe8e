package templating

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating/internal/fault"
)

// Pos is a place inside a string of a template. Line and Column count from 1;
// Column counts characters. The zero Pos means the string as a whole.
type Pos struct{ Line, Column int }

// IsZero reports whether the place is the string as a whole.
func (p Pos) IsZero() bool { return p == Pos{} }

// String returns the place as in "line 2, column 5".
func (p Pos) String() string {
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// Diagnostic is one mistake in a list of templates, reported to its author.
type Diagnostic struct {
	// Origin is the template, with the element if one of several objects of a for-each
	// failed.
	Origin Origin
	// Field leads to the value; empty for the template as a whole.
	Field Path
	// Text is the author's string at Field, if the mistake is inside it.
	Text string
	// Pos is the place inside Text.
	Pos Pos
	// Cause describes the mistake, in lower case. It never contains the value of a
	// device property.
	Cause error
	// Hint is what to write instead; it may be empty.
	Hint string
	// Secret is set if Field is in the data of a Secret.
	Secret bool
}

// Redact returns the diagnostic without what the author wrote into the data of a
// Secret. Messages that others can read need it: conditions, Events, logs.
func (d Diagnostic) Redact() Diagnostic {
	if !d.Secret {
		return d
	}
	redacted := Diagnostic{Origin: d.Origin, Field: d.Field, Secret: true, Pos: d.Pos}
	if errors.Is(d.Cause, ErrLimit) {
		redacted.Cause, redacted.Hint = d.Cause, d.Hint
		return redacted
	}
	place := ""
	if !d.Pos.IsZero() {
		place = " at " + d.Pos.String()
	}
	redacted.Cause = fmt.Errorf("there is a mistake in this value of a Secret%s", place)
	redacted.Hint = "kubectl akri lint shows what is wrong"
	return redacted
}

func isSecret(kind schema.GroupVersionKind) bool { return kind.Group == "" && kind.Kind == "Secret" }

// newDiagnostic returns a fault in text as a diagnostic without Origin.
func newDiagnostic(field Path, text string, f *fault.Fault) Diagnostic {
	d := Diagnostic{Field: field, Text: text, Cause: f.Cause, Hint: f.Hint}
	if f.Offset >= 0 {
		d.Pos = position(text, f.Offset)
	}
	return d
}

func position(text string, offset int) Pos {
	before := text[:min(offset, len(text))]
	newline := strings.LastIndexByte(before, '\n')
	return Pos{
		Line:   strings.Count(before, "\n") + 1,
		Column: utf8.RuneCountInString(before[newline+1:]) + 1,
	}
}

// Error returns the whole diagnostic on one line.
func (d Diagnostic) Error() string { return d.In(d.Origin.String()).Error() }

// In returns the diagnostic as a finding without its position, on one line. name is that of
// the template as its author knows it, such as an old field that it was converted from.
func (d Diagnostic) In(name string) finding.Finding {
	return finding.Finding{Text: printable(d.excerpt()), Mistake: finding.Mistake{
		Path: printable(d.Field.Below(name)), Cause: printable(d.Cause.Error()), Hint: printable(d.Hint),
	}}
}

// printable escapes the characters of an author's text that a line of a message
// must not contain: control characters, line ends, invalid UTF-8.
func printable(text string) string {
	fits := func(r rune) bool { return strconv.IsPrint(r) && r != utf8.RuneError }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !fits(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // an invalid byte is a RuneError
		if fits(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Unwrap returns the cause.
func (d Diagnostic) Unwrap() error { return d.Cause }

// excerpt returns the author's text for a message: all of a short line, otherwise
// the part of the line around Pos.
func (d Diagnostic) excerpt() string {
	if d.Text == "" {
		return ""
	}
	lines := strings.Split(d.Text, "\n")
	if len(lines) == 1 && len(d.Text) <= fault.MaxQuoted {
		return fault.Quote(d.Text, fault.MaxQuoted)
	}
	line, column := min(max(d.Pos.Line, 1), len(lines)), max(d.Pos.Column, 1)
	text := strings.TrimRight(lines[line-1], "\r")
	if runes := []rune(text); len(runes) > fault.MaxQuoted {
		from := min(max(column-1-fault.MaxQuoted/4, 0), len(runes)-1)
		to := min(from+fault.MaxQuoted, len(runes))
		text = string(runes[from:to])
	}
	if d.Pos.IsZero() {
		return fault.Quote(text, fault.MaxQuoted)
	}
	return fault.Quote(text, fault.MaxQuoted) + " (" + d.Pos.String() + ")"
}

// Diagnostics are all mistakes in a list of templates, in the order of the
// templates.
type Diagnostics []Diagnostic

// Error returns one line per diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns nil if there are no diagnostics, otherwise ds. Use it where an error
// is expected: empty Diagnostics in an error are not nil.
func (ds Diagnostics) Err() error {
	if len(ds) == 0 {
		return nil
	}
	return ds
}

// Unwrap returns the single diagnostics for errors.Is and errors.As.
func (ds Diagnostics) Unwrap() []error {
	errs := make([]error, len(ds))
	for i, d := range ds {
		errs[i] = d
	}
	return errs
}

// Of returns the diagnostics of one template, by its index in the list.
func (ds Diagnostics) Of(level Level, index int) Diagnostics {
	var of Diagnostics
	for _, d := range ds {
		if d.Origin.Template() == (Origin{Level: level, Index: index}) {
			of = append(of, d)
		}
	}
	return of
}
