package expr

import (
	"strings"
	"text/template/parse"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/fault"
)

// MaxBytes is the length limit of a string with expressions.
const MaxBytes = 8 << 10

// Estimates of the memory that compiling takes.
const (
	bytesPerText = 1200 // without its parts
	bytesPerNode = 200
)

// Text is a compiled string: plain, a whole expression that keeps its type, or
// longer text with expressions in it.
type Text struct {
	source string
	whole  expr   // exactly one action and nothing around it
	body   []stmt // longer text
	slots  int    // $variables that are alive at the same time

	keys []string // see PropertyKeys
	cost int64    // see Cost
}

// Source returns what the author wrote.
func (t *Text) Source() string { return t.source }

// IsPlain reports whether the text has no expression.
func (t *Text) IsPlain() bool { return t.whole == nil && t.body == nil }

// IsWhole reports whether the text is a single expression, which keeps its type.
func (t *Text) IsWhole() bool { return t.whole != nil }

// PropertyKeys returns the keys of device properties that the text mentions by
// name.
func (t *Text) PropertyKeys() []string { return t.keys }

// Cost estimates the memory, in bytes, that compiling the text took.
func (t *Text) Cost() int64 { return t.cost }

// Has reports whether a string contains an expression.
func Has(source string) bool { return strings.Contains(source, "{{") }

// Compile compiles a string and returns all mistakes in it. A text with mistakes
// must not be evaluated.
func Compile(source string, names Names) (*Text, []*fault.Fault) {
	t := &Text{source: source}
	if !Has(source) {
		return t, nil
	}
	t.cost = bytesPerText + int64(len(source))
	if len(source) > MaxBytes {
		return t, []*fault.Fault{fault.Newf(fault.Whole, "split it, or put long text without expressions elsewhere",
			"a string with expressions may have %d KiB, this one has %d bytes", MaxBytes>>10, len(source))}
	}
	if !utf8.ValidString(source) {
		return t, []*fault.Fault{fault.Newf(fault.Whole, "save the file as UTF-8", "this is not valid UTF-8")}
	}
	root, f := parseText(source)
	if f != nil {
		return t, []*fault.Fault{f}
	}
	r := &resolver{names: names}
	if action, ok := onlyAction(root); ok {
		t.whole = r.pipe(action.Pipe)
	} else if t.body = r.list(root); t.body == nil {
		t.body = []stmt{} // comments alone: empty text
	}
	t.slots, t.keys = r.maxSlots, r.keys
	t.cost += bytesPerNode * r.nodes
	return t, r.faults
}

// onlyAction returns the action of a text that consists of a single one and
// yields a value.
func onlyAction(root *parse.ListNode) (*parse.ActionNode, bool) {
	if root == nil || len(root.Nodes) != 1 {
		return nil, false
	}
	action, ok := root.Nodes[0].(*parse.ActionNode)
	return action, ok && len(action.Pipe.Decl) == 0
}
