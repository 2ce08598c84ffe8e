package expr

import (
	"slices"

	"akri.sh/akri/templating/internal/value"
)

// Read is a variable, or a part of one, that a text mentions.
type Read struct {
	// Name is how the text writes it: CAPACITY, INSTANCE_PROPERTIES.URL.
	Name string
	// Property is the key if it is a property of the device.
	Property string

	expr expr
}

// Value returns the value of what a text reads; nil if it has none.
func (m *Machine) Value(r Read) any {
	v, err := r.expr.eval(m)
	if err != nil {
		return nil
	}
	if fields, ok := value.AsMap(v); ok {
		return fields
	}
	return v
}

// Reads returns what the text mentions, in its order and without repetition.
func (t *Text) Reads() []Read {
	var r reader
	if t.whole != nil {
		r.expr(t.whole)
	}
	r.body(t.body)
	return r.reads
}

// reader collects what a text mentions.
type reader struct{ reads []Read }

func (r *reader) add(read Read) {
	if !slices.ContainsFunc(r.reads, func(known Read) bool { return known.Name == read.Name }) {
		r.reads = append(r.reads, read)
	}
}

func (r *reader) body(body []stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *printStmt:
			r.expr(s.value)
		case *setStmt:
			r.expr(s.value)
		case *ifStmt:
			r.branch(&s.branch)
		case *rangeStmt:
			r.branch(&s.branch)
		}
	}
}

func (r *reader) branch(b *branch) {
	r.expr(b.value)
	r.body(b.body)
	r.body(b.orElse)
}

func (r *reader) expr(e expr) {
	switch e := e.(type) {
	case *variableExpr:
		r.add(Read{Name: e.Name, expr: e})
	case *fieldExpr:
		if isPath(e) {
			r.field(e)
		} else {
			r.expr(e.of)
		}
	case *callExpr:
		r.call(e)
	case *shortCircuitExpr:
		r.call(&e.callExpr)
	}
}

// call treats a property that is read with a function like a field.
func (r *reader) call(call *callExpr) {
	of, key, ok := call.literalKey()
	if ok = ok && isDeviceProperties(of); ok {
		r.field(&fieldExpr{of: of, name: key})
	}
	for _, arg := range call.args {
		if !ok || arg != of {
			r.expr(arg)
		}
	}
}

func (r *reader) field(e *fieldExpr) {
	read := Read{Name: written(e), expr: e}
	if isDeviceProperties(e.of) {
		read.Property = e.name
	}
	r.add(read)
}

// isDeviceProperties reports whether an expression is the properties of a device,
// by name.
func isDeviceProperties(e expr) bool {
	switch e := e.(type) {
	case *variableExpr:
		return e.Properties
	case *fieldExpr:
		_, ofVariable := e.of.(*variableExpr)
		return ofVariable && e.name == "properties"
	}
	return false
}

// isPath reports whether an expression is a variable or a field of one.
func isPath(e expr) bool {
	switch e := e.(type) {
	case *variableExpr:
		return true
	case *fieldExpr:
		return isPath(e.of)
	}
	return false
}
