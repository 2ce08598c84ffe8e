package templating

import (
	"slices"
)

// Expression is a text with expressions in a template, and what it became in one
// of the objects made from it.
type Expression struct {
	// Field leads to it. If Key is set it is the last key of Field itself, not the
	// value below it.
	Field Path
	Key   bool
	// Text is what the author wrote.
	Text string
	// Reads are the inputs that the text mentions, in the order in which it does.
	Reads []Input
	// Value is what came of it; nil if Fault is set.
	Value any
	// Fault says why it has no value.
	Fault error
}

// Input is a variable, or a part of one, that an expression mentions.
type Input struct {
	// Name as it is written: CAPACITY, INSTANCE_PROPERTIES.URL.
	Name string
	// Property is the key if it is a property of the device.
	Property string
	// Value is nil if there is none.
	Value any
}

// Explain tells how each expression of the template that an object comes from got
// its value. It is for people: it costs a second rendering.
func (s *Set) Explain(values Values, origin Origin) []Expression {
	if s == nil || origin.Index < 0 || origin.Index >= len(s.templates) {
		return nil
	}
	t := s.templates[origin.Index]
	e := &explainer{}
	e.machine.scope = &scope{level: s.level, values: values}
	e.machine.scope.element = elementNamed(e.machine.scope, t.binds, origin.Element)
	if t.when != nil {
		e.text(annotationsPath.with(Key(annotationWhen)), t.when, false)
	}
	e.node(nil, t.content)
	return e.found
}

// elementNamed is the element of for-each that has a name; nil without for-each.
func elementNamed(s *scope, binds binding, name string) any {
	var elements []any
	switch binds {
	case bindsNode:
		elements = s.nodes().([]any)
	case bindsInstance:
		elements = s.instances().([]any)
	}
	for _, element := range elements {
		if elementName(element) == name {
			return element
		}
	}
	return nil
}

type explainer struct {
	machine machine
	found   []Expression
}

// node explains a value and what is below it.
func (e *explainer) node(field Path, n node) {
	switch n := n.(type) {
	case *textNode:
		e.text(field, n.text, false)
	case listNode:
		for i, element := range n {
			e.node(field.with(Index(i)), element)
		}
	case *mapNode:
		for _, entry := range n.entries {
			at := field.with(Key(entry.key.source))
			if !entry.key.plain() {
				e.text(at, entry.key, true)
			}
			e.node(at, entry.value)
		}
	}
}

func (e *explainer) text(field Path, t *text, key bool) {
	made := Expression{Field: slices.Clone(field), Key: key, Text: t.source}
	for _, read := range mentioned(t) {
		made.Reads = e.input(made.Reads, read)
	}
	e.machine.budget = newBudget(maxSteps, maxAllocation)
	value, f := e.machine.evaluate(t)
	if f != nil {
		made.Fault = f.diagnose(made.Field, t.source)
	} else {
		made.Value = value
	}
	e.found = append(e.found, made)
}

// input adds what an expression reads, once.
func (e *explainer) input(reads []Input, of expr) []Input {
	in := Input{}
	switch of := of.(type) {
	case *globalExpr:
		in.Name = of.variable.name
	case *fieldExpr:
		in.Name = of.written() + "." + of.name
		if isPropertiesVariable(of.of) {
			in.Property = of.name
		}
	}
	if slices.ContainsFunc(reads, func(known Input) bool { return known.Name == in.Name }) {
		return reads
	}
	e.machine.budget = newBudget(maxSteps, maxAllocation)
	if value, err := of.eval(&e.machine); err == nil {
		if m, isMap := asMap(value); isMap {
			value = map[string]any(m)
		}
		in.Value = value
	}
	return append(reads, in)
}

func isPropertiesVariable(of expr) bool {
	switch of := of.(type) {
	case *globalExpr:
		return of.variable.name == "INSTANCE_PROPERTIES"
	case *fieldExpr:
		global, is := of.of.(*globalExpr)
		return is && of.name == "properties" && global.variable.name == "INSTANCE"
	}
	return false
}

// mentioned are the variables in a text, with the fields that are read of them.
func mentioned(t *text) []expr {
	var found []expr
	if t.whole != nil {
		return inExpr(found, t.whole)
	}
	return inBody(found, t.body)
}

func inBody(found []expr, body []stmt) []expr {
	for _, s := range body {
		switch s := s.(type) {
		case *printStmt:
			found = inExpr(found, s.value)
		case *setStmt:
			found = inExpr(found, s.value)
		case *ifStmt:
			found = inBody(inBody(inExpr(found, s.cond), s.body), s.orElse)
		case *withStmt:
			found = inBody(inBody(inExpr(found, s.value), s.body), s.orElse)
		case *rangeStmt:
			found = inBody(inBody(inExpr(found, s.over), s.body), s.orElse)
		}
	}
	return found
}

func inExpr(found []expr, of expr) []expr {
	switch of := of.(type) {
	case *globalExpr:
		return append(found, of)
	case *fieldExpr:
		if rootIsVariable(of) {
			return append(found, of)
		}
		return inExpr(found, of.of)
	case *callExpr:
		return inCall(found, of)
	case *shortCircuitExpr:
		return inCall(found, &of.callExpr)
	}
	return found
}

// inCall takes a key that is read with a function for what it is, a field.
func inCall(found []expr, call *callExpr) []expr {
	args := call.args
	if len(args) >= 2 {
		of, key := args[0], args[1]
		if call.function.Name == "dig" {
			of, key = args[len(args)-1], args[0]
		}
		literal, isLiteral := key.(*literalExpr)
		name, isText := "", false
		if isLiteral {
			name, isText = literal.value.(string)
		}
		reads := slices.Contains([]string{"get", "index", "hasKey", "dig"}, call.function.Name)
		if reads && isText && isPropertiesVariable(of) {
			found = append(found, &fieldExpr{of: of, name: name})
			args = slices.DeleteFunc(slices.Clone(args), func(arg expr) bool { return arg == of })
		}
	}
	for _, arg := range args {
		found = inExpr(found, arg)
	}
	return found
}

func rootIsVariable(of *fieldExpr) bool {
	switch of := of.of.(type) {
	case *globalExpr:
		return true
	case *fieldExpr:
		return rootIsVariable(of)
	}
	return false
}
