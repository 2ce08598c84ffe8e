package expr

import (
	"regexp"
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
	root, f := parseText(source)
	if f != nil {
		report.Faults = orLiteral(source, []*fault.Fault{f})
		return t, report
	}
	r := &resolver{names: names}
	if action, ok := onlyAction(root); ok {
		t.whole = r.pipe(action.Pipe)
	} else if t.body = r.list(root); t.body == nil {
		t.body = []stmt{} // comments alone: empty text
	}
	t.slots = r.maxSlots
	report.Faults, report.PropertyKeys = orLiteral(source, r.faults), r.keys
	report.Cost += bytesPerNode * r.nodes
	return t, report
}

// variables matches Akri's variables, which are in capital letters.
var variables = regexp.MustCompile(`INSTANCE|[^.A-Z_][A-Z]{4}`)

// orLiteral adds to the hints of mistakes in expressions that mention no variable of Akri: they
// may be meant for another program that writes {{ too, such as Prometheus, Argo or Helm.
func orLiteral(source string, faults []*fault.Fault) []*fault.Fault {
	for _, f := range faults {
		before := source[:min(max(f.Offset, 0)+len("{{"), len(source))]
		action, _, _ := strings.Cut(source[max(strings.LastIndex(before, "{{"), 0):], "}}")
		if f.Offset != fault.Whole && !variables.MatchString(action) {
			f.Hint = strings.TrimPrefix(f.Hint+"; for {{ of another program write {{ \"{{\" }}, or {{ `{{` }} inside double quotes", "; ")
		}
	}
	return faults
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
