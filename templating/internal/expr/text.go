package expr

import (
	"strings"
	"text/template/parse"

	"akri.sh/akri/templating/internal/fault"
)

// MaxBytes is the limit of the expressions in a string, without the text around them.
const MaxBytes = 16 << 10

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
	slots  int    // the maximum number of $variables in scope
}

// Report is the result of compiling a text.
type Report struct {
	// Faults are all mistakes. A text with mistakes must not be evaluated.
	Faults []*fault.Fault
	// PropertyKeys are the keys of device properties that the text mentions by
	// name.
	PropertyKeys []string
	// Cost estimates the memory, in bytes, that compiling took. A plain text costs
	// nothing.
	Cost int64
}

// Source returns what the author wrote.
func (t *Text) Source() string { return t.source }

// IsPlain reports whether the text has no expression.
func (t *Text) IsPlain() bool { return t.whole == nil && t.body == nil }

// IsWhole reports whether the text is a single expression, which keeps its type.
func (t *Text) IsWhole() bool { return t.whole != nil }

// Has reports whether a string contains an expression.
func Has(source string) bool { return strings.Contains(source, "{{") }

// Compile compiles a string.
func Compile(source string, names Names) (*Text, Report) {
	t := &Text{source: source}
	if !Has(source) {
		return t, Report{}
	}
	report := Report{Cost: bytesPerText + int64(len(source))}
	defer func() { orLiteral(report.Faults, source, names) }()
	root, f := parseText(source)
	if f != nil {
		report.Faults = []*fault.Fault{f}
		return t, report
	}
	r := &resolver{names: names}
	if action, ok := onlyAction(root); ok {
		t.whole = r.pipe(action.Pipe)
	} else if t.body = r.list(root); t.body == nil {
		t.body = []stmt{} // comments alone: empty text
	}
	t.slots = r.maxSlots
	report.Faults, report.PropertyKeys = r.faults, r.keys
	report.Cost += bytesPerNode * r.nodes
	return t, report
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
