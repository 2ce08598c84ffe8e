package templating

import (
	"slices"
)

// expr is something with a value. Evaluation does not change it.
type expr interface {
	eval(m *machine) (any, error)
}

// machine evaluates the texts of one object, one after the other.
type machine struct {
	scope  *scope
	budget *budget
	slots  []any // the $variables of the current text
	dot    any
	out    []byte // the current longer text
	args   []any  // a stack of arguments, to spare an allocation per call
}

// evaluate gives the value of a whole expression, or the text of longer text.
func (m *machine) evaluate(t *text) (any, *fault) {
	if t.plain() {
		return t.source, nil
	}
	m.slots = slices.Grow(m.slots[:0], t.slots)[:t.slots]
	m.dot, m.out, m.args = nil, m.out[:0], m.args[:0]
	if t.whole != nil {
		value, err := t.whole.eval(m)
		if err != nil {
			return nil, faultAt(0, err)
		}
		return value, nil
	}
	if _, err := m.run(t.body); err != nil {
		return nil, faultAt(0, err)
	}
	if err := m.budget.allocate(stringHeader + int64(len(m.out))); err != nil {
		return nil, faultAt(-1, err)
	}
	return string(m.out), nil
}

type literalExpr struct{ value any }

// invalid stands where a fault was reported; it is never evaluated.
var invalid = &literalExpr{}

func (e *literalExpr) eval(m *machine) (any, error) { return e.value, m.budget.step(1) }

type globalExpr struct {
	variable variable
	offset   int
}

func (e *globalExpr) eval(m *machine) (any, error) {
	return e.variable.get(m.scope), m.budget.step(1)
}

type dotExpr struct{}

func (dotExpr) eval(m *machine) (any, error) { return m.dot, m.budget.step(1) }

type slotExpr int

func (e slotExpr) eval(m *machine) (any, error) { return m.slots[e], m.budget.step(1) }

// fieldExpr is X.NAME.
type fieldExpr struct {
	of     expr
	name   string
	offset int
}

func (e *fieldExpr) eval(m *machine) (any, error) {
	of, err := e.of.eval(m)
	if err != nil {
		return nil, err
	}
	if err := m.budget.step(1); err != nil {
		return nil, faultAt(e.offset, err)
	}
	fields, isMap := asMap(of)
	if !isMap {
		return nil, faultf(e.offset, "only maps have fields; an element of a list is read with index", "there is no .%s in %s", cut(e.name, maxName), kindName(of))
	}
	value, found := fields[e.name]
	if !found {
		return nil, faultAt(e.offset, missing(of, e.name, e.written()))
	}
	return value, nil
}

// written is how get would read the same.
func (e *fieldExpr) written() string {
	switch of := e.of.(type) {
	case *globalExpr:
		return of.variable.name
	case *fieldExpr:
		if outer := of.written(); outer != "" {
			return outer + "." + of.name
		}
		if _, isDot := of.of.(dotExpr); isDot {
			return "." + of.name
		}
	case dotExpr:
		return "."
	}
	return ""
}

// MissingKeyError says that a template reads something that is not there.
type MissingKeyError struct {
	Key      string
	Property bool // Key is a property of the device
	known    []string
}

func (e *MissingKeyError) Error() string {
	what := "key"
	if e.Property {
		what = "property"
	}
	return what + " " + quote(e.Key, maxName) + " is not there; known: " + listNames(e.known)
}

// missing is the error for key of a map that the author wrote as written.
func missing(of any, key, written string) error {
	m, _ := asMap(of)
	_, isProperties := of.(propertyMap)
	e := &MissingKeyError{Key: key, Property: isProperties, known: keysOf(m)}
	if written == "" {
		written = "MAP"
	}
	hint := "write {{ get " + cut(written, maxName) + " " + quote(key, maxName) + ` | default "..." }} if it is optional`
	if near := nearest(key, e.known); near != "" {
		hint = "did you mean " + quote(near, maxName) + "? " + hint
	}
	return &hinted{cause: e, hint: hint}
}

// callExpr is a call of a function from the table.
type callExpr struct {
	function *Function
	args     []expr
	offset   int
}

func (e *callExpr) eval(m *machine) (any, error) {
	base := len(m.args)
	for _, arg := range e.args {
		value, err := arg.eval(m)
		if err != nil {
			return nil, err
		}
		m.args = append(m.args, value)
	}
	value, err := e.function.call(m, m.args[base:len(m.args):len(m.args)])
	clear(m.args[base:])
	m.args = m.args[:base]
	if err != nil {
		return nil, faultAt(e.offset, err)
	}
	return value, nil
}

// shortCircuitExpr is and and or: they stop at the first argument that decides.
type shortCircuitExpr struct {
	callExpr
	stopAt bool
}

func (e *shortCircuitExpr) eval(m *machine) (value any, err error) {
	for _, arg := range e.args {
		if value, err = arg.eval(m); err != nil {
			return nil, err
		}
		if truthy(value) == e.stopAt {
			break
		}
	}
	return value, m.budget.step(1)
}
