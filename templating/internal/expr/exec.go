package expr

import (
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/functions"
	"akri.sh/akri/templating/internal/value"
)

// stmt is a part of longer text: plain text or a statement.
type stmt interface {
	exec(m *Machine) (signal, error)
}

// signal is the way in which a statement ended.
type signal int

const (
	signalNext signal = iota
	signalBreak
	signalContinue
)

func (m *Machine) run(body []stmt) (signal, error) {
	for _, s := range body {
		if sig, err := s.exec(m); err != nil || sig != signalNext {
			return sig, err
		}
	}
	return signalNext, nil
}

// write appends to the text. A text that cannot fit into any object fails here,
// before it is complete.
func (m *Machine) write(s string) error {
	if len(m.out)+len(s) > budget.MaxObjectBytes {
		return m.Budget.TooLarge()
	}
	if err := m.Budget.Step(int64(len(s)) / 64); err != nil {
		return err
	}
	if len(m.out)+len(s) > cap(m.out) { // append doubles
		if err := m.Budget.Allocate(2 * int64(len(m.out)+len(s))); err != nil {
			return err
		}
	}
	m.out = append(m.out, s...)
	return nil
}

type textStmt string

func (s textStmt) exec(m *Machine) (signal, error) { return signalNext, m.write(string(s)) }

// printStmt is {{ VALUE }}.
type printStmt struct {
	value  expr
	offset int
}

func (s *printStmt) exec(m *Machine) (signal, error) {
	v, err := s.value.eval(m)
	if err != nil {
		return signalNext, err
	}
	if str, ok := v.(string); ok {
		return signalNext, m.write(str)
	}
	formatted, err := functions.Text(m.Budget, v)
	if err != nil {
		return signalNext, fault.At(s.offset, err)
	}
	return signalNext, m.write(formatted)
}

// notInText returns the fault of a variable that cannot be part of longer text.
func notInText(v *Variable, offset int) *fault.Fault {
	return fault.Newf(offset, v.NotInText, "%s cannot be part of a longer string", v.Name)
}

// setStmt is {{ $x := VALUE }} and {{ $x = VALUE }}.
type setStmt struct {
	slots []int
	value expr
}

func (s *setStmt) exec(m *Machine) (signal, error) {
	v, err := s.value.eval(m)
	if err == nil {
		m.slots[s.slots[0]] = v
	}
	return signalNext, err
}

// branch is what if, with and range have in common.
type branch struct {
	value        expr
	slots        []int // the $variables that it sets
	body, orElse []stmt
}

// ifStmt is if, or with, whose body has the value as its dot.
type ifStmt struct {
	branch
	with bool
}

func (s *ifStmt) exec(m *Machine) (signal, error) {
	v, err := s.value.eval(m)
	if err != nil {
		return signalNext, err
	}
	if len(s.slots) > 0 {
		m.slots[s.slots[0]] = v
	}
	if !value.Truthy(v) {
		return m.run(s.orElse)
	}
	outer := m.dot
	if s.with {
		m.dot = v
	}
	sig, err := m.run(s.body)
	m.dot = outer
	return sig, err
}

type jumpStmt signal

func (s jumpStmt) exec(*Machine) (signal, error) { return signal(s), nil }

type rangeStmt struct {
	branch
	offset int
}

// exec runs the body for each element of a list, entry of a map in the order of its keys,
// or number below a whole number, and otherwise the else branch. The limit is checked
// before the first pass, so that a range that is too long costs nothing; each pass pays
// for itself.
func (s *rangeStmt) exec(m *Machine) (signal, error) {
	over, err := s.value.eval(m)
	if err != nil {
		return signalNext, err
	}
	for _, slot := range s.slots {
		m.slots[slot] = over // for else
	}
	passes, element, ok := elementsOf(over)
	switch {
	case !ok:
		return signalNext, fault.Newf(s.offset, "use a list, a map or a whole number",
			"range cannot iterate over %s", value.KindName(over))
	case passes > budget.MaxRange:
		return signalNext, fault.At(s.offset, m.Budget.Exhaustf("", "elements of one range are limited to %d", budget.MaxRange))
	case passes <= 0:
		sig, err := m.run(s.orElse)
		if sig == signalBreak {
			sig = signalNext // as in text/template, it ends this range and not the enclosing one
		}
		return sig, err
	}
	outer := m.dot
	defer func() { m.dot = outer }()
	for i := range passes {
		key, v := element(i)
		sig, err := s.pass(m, key, v)
		if err != nil {
			return signalNext, fault.At(s.offset, err)
		}
		if sig == signalBreak {
			break
		}
	}
	return signalNext, nil
}

// elementsOf returns how many elements a range visits, and a function for the key and the
// value of each; ok is false if there is no range over such a value.
func elementsOf(over any) (passes int64, element func(i int64) (key, v any), ok bool) {
	switch over := over.(type) {
	case nil:
		return 0, nil, true
	case int64:
		return over, func(i int64) (any, any) { return i, i }, true
	case []any:
		return int64(len(over)), func(i int64) (any, any) { return i, over[i] }, true
	}
	fields, ok := value.AsMap(over)
	if !ok || len(fields) > budget.MaxRange {
		return int64(len(fields)), nil, ok
	}
	keys := value.Keys(fields)
	return int64(len(keys)), func(i int64) (any, any) { return keys[i], fields[keys[i]] }, true
}

// pass runs the body once.
func (s *rangeStmt) pass(m *Machine, key, element any) (signal, error) {
	if err := m.Budget.Iterate(); err != nil {
		return signalNext, err
	}
	switch len(s.slots) {
	case 1:
		m.slots[s.slots[0]] = element
	case 2:
		m.slots[s.slots[0]], m.slots[s.slots[1]] = key, element
	}
	m.dot = element
	return m.run(s.body)
}
