package templating

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxQuoted is how much of an author's text or of a name a message repeats.
const maxQuoted = 120

// Pos is a place inside a string of a template. Line and Column count from 1;
// Column counts characters. The zero Pos means the string as a whole.
type Pos struct{ Line, Column int }

// IsZero reports that the place is the string as a whole.
func (p Pos) IsZero() bool { return p == Pos{} }

// String is "line 2, column 5".
func (p Pos) String() string {
	return fmt.Sprintf("line %d, column %d", p.Line, p.Column)
}

// Diagnostic is one thing that is wrong with a list of templates, told to its
// author.
type Diagnostic struct {
	// List is the template: instanceBrokerResources[2]; when one of several
	// objects made by for-each failed, the element follows in parentheses.
	List string
	// Field leads to the value; empty for the template as a whole.
	Field Path
	// Text is the author's string at Field, when the trouble is inside it.
	Text string
	// Pos is the place inside Text.
	Pos Pos
	// Cause says what is wrong, in lower case. It never holds the value of a
	// device property.
	Cause error
	// Hint says what to write instead; it may be empty.
	Hint string
}

// Error is the whole diagnostic on one line.
func (d Diagnostic) Error() string {
	var b strings.Builder
	b.WriteString(d.List)
	if field := d.Field.String(); field != "" {
		if b.Len() > 0 && field[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(field)
	}
	if d.Text != "" {
		b.WriteString(": " + d.excerpt())
	}
	b.WriteString(": " + d.Cause.Error())
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	return printable(b.String())
}

// printable escapes what an author's text may hold and a line of a message must
// not: control characters, line ends, broken UTF-8.
func printable(text string) string {
	fits := func(r rune) bool { return strconv.IsPrint(r) && r != utf8.RuneError }
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !fits(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text { // a broken byte comes as RuneError
		if fits(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// Unwrap gives the cause.
func (d Diagnostic) Unwrap() error { return d.Cause }

// excerpt is the author's text as a message shows it: all of a short line, else
// the line of Pos, cut around the column.
func (d Diagnostic) excerpt() string {
	lines := strings.Split(d.Text, "\n")
	if len(lines) == 1 && len(d.Text) <= maxQuoted {
		return quote(d.Text, maxQuoted)
	}
	line, column := max(d.Pos.Line, 1), max(d.Pos.Column, 1)
	if line > len(lines) {
		line = len(lines)
	}
	text := strings.TrimRight(lines[line-1], "\r")
	if runes := []rune(text); len(runes) > maxQuoted {
		from := min(max(column-1-maxQuoted/4, 0), len(runes)-1)
		to := min(from+maxQuoted, len(runes))
		text = string(runes[from:to])
	}
	if d.Pos.IsZero() {
		return quote(text, maxQuoted)
	}
	return quote(text, maxQuoted) + " (" + d.Pos.String() + ")"
}

// Diagnostics is everything wrong with a list of templates, in the order of the
// templates.
type Diagnostics []Diagnostic

// Error is one line per diagnostic.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Err is nil when there is nothing wrong, else ds. Use it where an error is
// wanted: a Diagnostics of length 0 in an error is not nil.
func (ds Diagnostics) Err() error {
	if len(ds) == 0 {
		return nil
	}
	return ds
}

// Unwrap gives the single diagnostics to errors.Is and errors.As.
func (ds Diagnostics) Unwrap() []error {
	errs := make([]error, len(ds))
	for i, d := range ds {
		errs[i] = d
	}
	return errs
}

// Of is the diagnostics about one template, by its index in the list.
func (ds Diagnostics) Of(level Level, index int) Diagnostics {
	var of Diagnostics
	list := Origin{Level: level, Index: index}.String()
	for _, d := range ds {
		if d.List == list || strings.HasPrefix(d.List, list+" ") {
			of = append(of, d)
		}
	}
	return of
}

// fault is something wrong inside one string, before it is known which string
// of which template that is.
type fault struct {
	offset int // in bytes; negative: the string as a whole
	cause  error
	hint   string
}

func (f *fault) Error() string { return f.cause.Error() }

func faultf(offset int, hint, format string, args ...any) *fault {
	return &fault{offset: offset, cause: fmt.Errorf(format, args...), hint: hint}
}

// hinted is an error of a function that brings its own remedy.
type hinted struct {
	cause error
	hint  string
}

func (h *hinted) Error() string { return h.cause.Error() }
func (h *hinted) Unwrap() error { return h.cause }

func hintf(hint, format string, args ...any) error {
	return &hinted{cause: fmt.Errorf(format, args...), hint: hint}
}

// faultAt gives an error a place, unless it has one.
func faultAt(offset int, err error) *fault {
	if at, ok := errors.AsType[*fault](err); ok {
		return at
	}
	if h, ok := errors.AsType[*hinted](err); ok {
		return &fault{offset: offset, cause: h.cause, hint: h.hint}
	}
	if limit, ok := errors.AsType[*LimitError](err); ok {
		return &fault{offset: offset, cause: err, hint: limit.hint()}
	}
	return &fault{offset: offset, cause: err}
}

// diagnose turns a fault in text into a diagnostic without List.
func (f *fault) diagnose(field Path, text string) Diagnostic {
	d := Diagnostic{Field: field, Text: text, Cause: f.cause, Hint: f.hint}
	if f.offset >= 0 {
		d.Pos = position(text, f.offset)
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

// quote puts text into double quotes for a message: cut to limit bytes, control
// characters escaped, quotation marks left alone because expressions are full of
// them.
func quote(text string, limit int) string {
	cut := ""
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text, cut = text[:limit], "…"
	}
	quoted := strconv.Quote(text)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return `"` + quoted + cut + `"`
}
