package templating

import (
	"strconv"
	"strings"
)

// stmt is a part of longer text.
type stmt interface {
	exec(m *machine) (signal, error)
}

// signal is how a statement ended.
type signal int

const (
	signalNext signal = iota
	signalBreak
	signalContinue
)

func (m *machine) run(body []stmt) (signal, error) {
	for _, s := range body {
		if sig, err := s.exec(m); err != nil || sig != signalNext {
			return sig, err
		}
	}
	return signalNext, nil
}

// write adds to the text. A text that cannot fit into any object ends here and
// not when it is complete.
func (m *machine) write(s string) error {
	if len(m.out)+len(s) > MaxObjectBytes {
		return m.budget.output(MaxObjectBytes + 1)
	}
	if err := m.budget.step(int64(len(s)) / 64); err != nil {
		return err
	}
	if len(m.out)+len(s) > cap(m.out) { // append doubles
		if err := m.budget.allocate(2 * int64(len(m.out)+len(s))); err != nil {
			return err
		}
	}
	m.out = append(m.out, s...)
	return nil
}

type textStmt string

func (s textStmt) exec(m *machine) (signal, error) { return signalNext, m.write(string(s)) }

// printStmt is {{ VALUE }}.
type printStmt struct {
	value  expr
	offset int
}

func (s *printStmt) exec(m *machine) (signal, error) {
	value, err := s.value.eval(m)
	if err != nil {
		return signalNext, err
	}
	if text, is := value.(string); is {
		return signalNext, m.write(text)
	}
	if g, is := s.value.(*globalExpr); is && g.variable.structured {
		return signalNext, structureInText(g.variable.name, s.offset)
	}
	written, err := m.text(value)
	if err != nil {
		return signalNext, faultAt(s.offset, err)
	}
	return signalNext, m.write(written)
}

func structureInText(name string, offset int) *fault {
	hint := "make it the whole value, or choose a part of it: {{ " + name + ".KEY }}"
	if name == "INSTANCES" {
		hint = "make it the whole value, or go through it with range: {{ range INSTANCES }}{{ .name }} {{ end }}"
	}
	return faultf(offset, hint, "%s cannot be part of longer text", name)
}

// text writes a value into longer text: lists as a,b and LABEL_SELECTOR as
// k=v,k=v. Other maps have no such form.
func (m *machine) text(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return formatFloat(v), nil
	case nil:
		return "", hintf(`write {{ … | default "..." }} to say what to use then`, "the expression yields nothing")
	case []any:
		return m.joinList(v, ",")
	case selectorMap:
		var pairs []any
		for _, key := range keysOf(v) {
			value, _ := v[key].(string)
			pairs = append(pairs, key+"="+value)
		}
		return m.joinList(pairs, ",")
	}
	return "", hintf("make it the whole value, choose one key of it, or use toJson", "a map cannot be part of longer text")
}

// joinList writes the elements of a list with separators between them.
func (m *machine) joinList(list []any, separator string) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	size := len(separator) * (len(list) - 1)
	for _, element := range list {
		switch v := element.(type) {
		case string:
			size += len(v)
		case nil, []any, map[string]any, propertyMap, selectorMap:
			return "", hintf("go through the list with range, or use toJson", "a list that holds %s cannot become text", kindName(element))
		default:
			size += 24
		}
		if size > MaxObjectBytes {
			break
		}
	}
	if err := m.grows(size); err != nil {
		return "", err
	}
	if err := m.budget.step(int64(len(list))); err != nil {
		return "", err
	}
	var b strings.Builder
	b.Grow(size)
	for i, element := range list {
		if i > 0 {
			b.WriteString(separator)
		}
		written, err := m.text(element)
		if err != nil {
			return "", err
		}
		b.WriteString(written)
	}
	return b.String(), nil
}

// formatFloat writes a number in plain digits, as JSON does, where people would.
func formatFloat(f float64) string {
	format := byte('f')
	if size := max(f, -f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'g'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}

// setStmt is {{ $x := VALUE }} and {{ $x = VALUE }}.
type setStmt struct {
	slots []int
	value expr
}

func (s *setStmt) exec(m *machine) (signal, error) {
	value, err := s.value.eval(m)
	if err == nil {
		m.slots[s.slots[0]] = value
	}
	return signalNext, err
}

type ifStmt struct {
	cond         expr
	slots        []int
	body, orElse []stmt
}

func (s *ifStmt) exec(m *machine) (signal, error) {
	value, err := s.cond.eval(m)
	if err != nil {
		return signalNext, err
	}
	if len(s.slots) > 0 {
		m.slots[s.slots[0]] = value
	}
	if truthy(value) {
		return m.run(s.body)
	}
	return m.run(s.orElse)
}

type withStmt struct {
	value        expr
	slots        []int
	body, orElse []stmt
}

func (s *withStmt) exec(m *machine) (signal, error) {
	value, err := s.value.eval(m)
	if err != nil {
		return signalNext, err
	}
	if len(s.slots) > 0 {
		m.slots[s.slots[0]] = value
	}
	if !truthy(value) {
		return m.run(s.orElse)
	}
	outer := m.dot
	m.dot = value
	sig, err := m.run(s.body)
	m.dot = outer
	return sig, err
}

type jumpStmt signal

func (s jumpStmt) exec(*machine) (signal, error) { return signal(s), nil }

type rangeStmt struct {
	over         expr
	slots        []int
	body, orElse []stmt
	offset       int
}

func (s *rangeStmt) exec(m *machine) (signal, error) {
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
		if passes = int(min(max(v, 0), MaxRange+1)); passes > MaxRange {
			break
		}
		for i := int64(0); i < v && err == nil && sig != signalBreak; i++ {
			sig, err = s.pass(m, i, i)
		}
	case []any:
		if passes = len(v); passes > MaxRange {
			break
		}
		for i, element := range v {
			if sig, err = s.pass(m, int64(i), element); err != nil || sig == signalBreak {
				break
			}
		}
	default:
		fields, isMap := asMap(over)
		if !isMap {
			return signalNext, faultf(s.offset, "go through a list, a map or a whole number", "range cannot go through %s", kindName(over))
		}
		if passes = len(fields); passes > MaxRange {
			break
		}
		for _, key := range keysOf(fields) {
			if sig, err = s.pass(m, key, fields[key]); err != nil || sig == signalBreak {
				break
			}
		}
	}
	switch {
	case passes > MaxRange:
		return signalNext, faultAt(s.offset, m.budget.exhaust(&LimitError{What: "elements of one range", Limit: MaxRange}))
	case err != nil:
		return signalNext, faultAt(s.offset, err)
	case passes == 0:
		m.dot = outer
		if sig, err = m.run(s.orElse); sig == signalBreak {
			sig = signalNext // text/template, too, ends this range by it and not the one around
		}
		return sig, err
	}
	return signalNext, nil
}

// pass runs the body once.
func (s *rangeStmt) pass(m *machine, key, element any) (signal, error) {
	if err := m.budget.iterate(); err != nil {
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
