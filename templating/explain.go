package templating

import (
	"slices"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/expr"
)

// Expression is a text with expressions in a template, and its value in one of the
// objects rendered from it.
type Expression struct {
	// Field leads to it. If Key is set it is the last key of Field itself, not the
	// value below it.
	Field Path
	Key   bool
	// Text is what the author wrote.
	Text string
	// Reads are the inputs that the text mentions, in its order.
	Reads []Input
	// Value is the result; nil if Fault is set.
	Value any
	// Fault is the reason why there is no value.
	Fault error
}

// Input is a variable, or a part of one, that an expression mentions.
type Input struct {
	// Name is how the text writes it: CAPACITY, INSTANCE_PROPERTIES.URL.
	Name string
	// Property is the key if it is a property of the device.
	Property string
	// Value is nil if there is none.
	Value any
}

// Explain returns all expressions of the template that an object was rendered
// from, with their inputs and values. It costs a second rendering.
func (s *Set) Explain(values Values, origin Origin) []Expression {
	if s == nil || origin.Index < 0 || origin.Index >= len(s.templates) {
		return nil
	}
	t := s.templates[origin.Index]
	at := &scope{level: s.level, values: values}
	for _, element := range at.elements(t.binds) {
		if elementName(element) == origin.Element {
			at.element = element
			break
		}
	}
	e := &explainer{}
	e.machine.Scope = at
	if t.when != nil {
		e.text(annotationsPath.with(Key(annotationWhen)), t.when, false)
	}
	e.node(nil, t.content)
	return e.found
}

type explainer struct {
	machine expr.Machine
	found   []Expression
}

// node explains a value and everything below it.
func (e *explainer) node(field Path, n node) {
	switch n := n.(type) {
	case *textNode:
		e.text(field, n.text, false)
	case listNode:
		for i, element := range n {
			e.node(field.with(Index(i)), element)
		}
	case *mapNode:
		for _, each := range n.entries {
			at := field.with(Key(each.key.Source()))
			if !each.key.IsPlain() {
				e.text(at, each.key, true)
			}
			e.node(at, each.value)
		}
	}
}

func (e *explainer) text(field Path, t *expr.Text, key bool) {
	explained := Expression{Field: slices.Clone(field), Key: key, Text: t.Source()}
	for _, read := range t.Reads() {
		e.machine.Budget = budget.New()
		explained.Reads = append(explained.Reads, Input{
			Name: read.Name, Property: read.Property, Value: e.machine.Value(read),
		})
	}
	e.machine.Budget = budget.New()
	v, f := e.machine.Evaluate(t)
	if f != nil {
		explained.Fault = newDiagnostic(explained.Field, t.Source(), f)
	} else {
		explained.Value = v
	}
	e.found = append(e.found, explained)
}
