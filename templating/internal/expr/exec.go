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

type ifStmt struct {
	cond         expr
	slots        []int
	body, orElse []stmt
}

func (s *ifStmt) exec(m *Machine) (signal, error) {
	v, err := s.cond.eval(m)
	if err != nil {
		return signalNext, err
	}
	if len(s.slots) > 0 {
		m.slots[s.slots[0]] = v
	}
	if value.Truthy(v) {
		return m.run(s.body)
	}
	return m.run(s.orElse)
}

type withStmt struct {
	value        expr
	slots        []int
	body, orElse []stmt
}

func (s *withStmt) exec(m *Machine) (signal, error) {
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
	m.dot = v
	sig, err := m.run(s.body)
	m.dot = outer
	return sig, err
}

type jumpStmt signal

func (s jumpStmt) exec(*Machine) (signal, error) { return signal(s), nil }

type rangeStmt struct {
	over         expr
	slots        []int
	body, orElse []stmt
	offset       int
}

// exec runs the body for each element of a list, entry of a map in the order of its keys,
// or number below a whole number, and otherwise the else branch. The limit is checked
// before the first pass, so that a range that is too long costs nothing; each pass pays
// for itself.
func (s *rangeStmt) exec(m *Machine) (signal, error) {
	over, err := s.over.eval(m)
	if err != nil {
		return signalNext, err
	}
	for _, slot := range s.slots {
		m.slots[slot] = over // for else
	}
	outer := m.dot
	defer func() { m.dot = outer }()
	passes, sig := 0, signalNext
	switch v := over.(type) {
	case nil:
	case int64:
		if passes = int(min(max(v, 0), budget.MaxRange+1)); passes > budget.MaxRange {
			break
		}
		for i := int64(0); i < v && err == nil && sig != signalBreak; i++ {
			sig, err = s.pass(m, i, i)
		}
	case []any:
		if passes = len(v); passes > budget.MaxRange {
			break
		}
		for i, element := range v {
			if sig, err = s.pass(m, int64(i), element); err != nil || sig == signalBreak {
				break
			}
		}
	default:
		fields, ok := value.AsMap(over)
		if !ok {
			return signalNext, fault.Newf(s.offset, "use a list, a map or a whole number",
				"range cannot iterate over %s", value.KindName(over))
		}
		if passes = len(fields); passes > budget.MaxRange {
			break
		}
		for _, key := range value.Keys(fields) {
			if sig, err = s.pass(m, key, fields[key]); err != nil || sig == signalBreak {
				break
			}
		}
	}
	switch {
	case passes > budget.MaxRange:
		return signalNext, fault.At(s.offset, m.Budget.Exhaustf("", "elements of one range are limited to %d", budget.MaxRange))
	case err != nil:
		return signalNext, fault.At(s.offset, err)
	case passes == 0:
		m.dot = outer
		if sig, err = m.run(s.orElse); sig == signalBreak {
			sig = signalNext // as in text/template, it ends this range and not the enclosing one
		}
		return sig, err
	}
	return signalNext, nil
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
