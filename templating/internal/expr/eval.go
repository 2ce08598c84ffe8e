package expr

import (
	"slices"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/functions"
	"akri.sh/akri/templating/internal/value"
)

// expr is an expression. Evaluation does not change it.
type expr interface {
	eval(m *Machine) (any, error)
}

// Machine evaluates the texts of one object, one after the other. It belongs to
// one goroutine.
type Machine struct {
	Scope  Scope
	Budget *budget.Budget

	slots []any // the $variables of the current text
	dot   any
	out   []byte // the current longer text
	args  []any  // a stack of arguments, to save an allocation per call
}

// Evaluate returns the value of a whole expression, or the text of longer text.
func (m *Machine) Evaluate(t *Text) (any, *fault.Fault) {
	if t.IsPlain() {
		return t.source, nil
	}
	m.slots = slices.Grow(m.slots[:0], t.slots)[:t.slots]
	m.dot, m.out, m.args = nil, m.out[:0], m.args[:0]
	if t.whole != nil {
		v, err := t.whole.eval(m)
		if err != nil {
			return nil, fault.At(0, err)
		}
		return v, nil
	}
	if _, err := m.run(t.body); err != nil {
		return nil, fault.At(0, err)
	}
	if err := m.Budget.Allocate(budget.StringHeader + int64(len(m.out))); err != nil {
		return nil, fault.At(fault.Whole, err)
	}
	return string(m.out), nil
}

type literalExpr struct{ value any }

// invalid replaces an expression whose fault was reported. It is never evaluated.
var invalid = &literalExpr{}

func (e *literalExpr) eval(m *Machine) (any, error) { return e.value, m.Budget.Step(1) }

// variableExpr is a bare word.
type variableExpr struct {
	*Variable
	offset int
}

func (e *variableExpr) eval(m *Machine) (any, error) {
	return m.Scope.Value(e.ID), m.Budget.Step(1)
}

type dotExpr struct{}

func (dotExpr) eval(m *Machine) (any, error) { return m.dot, m.Budget.Step(1) }

// slotExpr is a $variable.
type slotExpr int

func (e slotExpr) eval(m *Machine) (any, error) { return m.slots[e], m.Budget.Step(1) }

// fieldExpr is X.NAME.
type fieldExpr struct {
	of     expr
	name   string
	offset int
}

func (e *fieldExpr) eval(m *Machine) (any, error) {
	of, err := e.of.eval(m)
	if err != nil {
		return nil, err
	}
	if err := m.Budget.Step(1); err != nil {
		return nil, fault.At(e.offset, err)
	}
	fields, ok := value.AsMap(of)
	if !ok {
		return nil, fault.Newf(e.offset, "only maps have fields; an element of a list is read with index",
			"there is no .%s in %s", text.Truncate(e.name, fault.MaxName), value.KindName(of))
	}
	v, found := fields[e.name]
	if !found {
		return nil, fault.At(e.offset, value.Missing(of, e.name, written(e.of)))
	}
	return v, nil
}

// written returns an expression as the author would write it as an argument of
// get; "" if it is neither dot nor a variable nor a field of these.
func written(e expr) string {
	switch e := e.(type) {
	case *variableExpr:
		return e.Name
	case dotExpr:
		return "."
	case *fieldExpr:
		switch outer := written(e.of); outer {
		case "":
			return ""
		case ".":
			return "." + e.name
		default:
			return outer + "." + e.name
		}
	}
	return ""
}

// callExpr is a call of a function.
type callExpr struct {
	function *functions.Function
	args     []expr
	offset   int
}

func (e *callExpr) eval(m *Machine) (any, error) {
	base := len(m.args)
	for _, arg := range e.args {
		v, err := arg.eval(m)
		if err != nil {
			return nil, err
		}
		m.args = append(m.args, v)
	}
	v, err := e.function.Call(m.Budget, m.args[base:len(m.args):len(m.args)])
	clear(m.args[base:])
	m.args = m.args[:base]
	if err != nil {
		return nil, fault.At(e.offset, err)
	}
	return v, nil
}

// literalKey returns the map and the key if the call reads a map with a literal
// key.
func (e *callExpr) literalKey() (of expr, key string, ok bool) {
	if len(e.args) < 2 {
		return nil, "", false
	}
	var keyArg expr
	switch e.function.Name {
	case "get", "index", "hasKey":
		of, keyArg = e.args[0], e.args[1]
	case "dig":
		of, keyArg = e.args[len(e.args)-1], e.args[0]
	default:
		return nil, "", false
	}
	if literal, isLiteral := keyArg.(*literalExpr); isLiteral {
		key, ok = literal.value.(string)
	}
	return of, key, ok
}

// shortCircuitExpr is and or or: it stops at the first argument that decides.
type shortCircuitExpr struct {
	callExpr
	stopAt bool
}

func (e *shortCircuitExpr) eval(m *Machine) (v any, err error) {
	for _, arg := range e.args {
		if v, err = arg.eval(m); err != nil {
			return nil, err
		}
		if value.Truthy(v) == e.stopAt {
			break
		}
	}
	return v, m.Budget.Step(1)
}
