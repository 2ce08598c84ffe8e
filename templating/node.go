package templating

import (
	"errors"
	"math"
	"unicode/utf8"
)

// node is a compiled value of a template. Rendering it makes a new value each
// time; false means that something went wrong and was reported.
type node interface {
	render(b *builder) (any, bool)
}

// literalNode is a scalar without expressions.
type literalNode struct {
	value any
	bytes int // in JSON
}

func (n literalNode) render(b *builder) (any, bool) {
	return n.value, b.pay(n.bytes, 0)
}

type textNode struct{ text *text }

func (n *textNode) render(b *builder) (any, bool) {
	value, f := b.machine.evaluate(n.text)
	if f != nil {
		b.report(f, n.text.source)
		return nil, false
	}
	if value == nil {
		b.report(faultf(-1, `write {{ … | default "..." }} to say what to use then, or write null without an expression`, "the expression yields nothing"), n.text.source)
		return nil, false
	}
	if s, is := value.(string); is && utf8.ValidString(s) {
		return value, b.pay(len(s)+2, stringHeader)
	}
	made, err := b.copy(value, 0)
	if err != nil {
		b.report(faultAt(-1, err), n.text.source)
		return nil, false
	}
	return made, true
}

type listNode []node

func (n listNode) render(b *builder) (any, bool) {
	if !b.pay(2, listBytes(len(n))) {
		return nil, false
	}
	list := make([]any, len(n))
	complete := true
	for i, element := range n {
		b.path = append(b.path, Index(i))
		value, ok := element.render(b)
		b.path = b.path[:len(b.path)-1]
		list[i] = value
		if complete = complete && ok; b.exhausted() {
			return nil, false
		}
	}
	return list, complete
}

type entry struct {
	key   *text
	value node
}

type mapNode struct {
	entries     []entry // sorted by the keys' source
	expressions bool    // in keys
}

func (n *mapNode) render(b *builder) (any, bool) {
	if !b.pay(2, mapBytes(len(n.entries))) {
		return nil, false
	}
	made := make(map[string]any, len(n.entries))
	var sources map[string]string // of the keys made so far
	if n.expressions {
		sources = make(map[string]string, len(n.entries))
	}
	complete := true
	for _, e := range n.entries {
		b.path = append(b.path, Key(e.key.source))
		key, ok := e.renderKey(b)
		if ok && n.expressions {
			if other, found := sources[key]; found {
				b.report(faultf(-1, "make the keys differ", "the keys %s and %s become the same", quote(other, maxQuoted), quote(e.key.source, maxQuoted)), "")
				ok = false
			}
			sources[key] = e.key.source
		}
		if ok {
			made[key], ok = e.value.render(b)
		}
		b.path = b.path[:len(b.path)-1]
		if complete = complete && ok; b.exhausted() {
			return nil, false
		}
	}
	return made, complete
}

func (e *entry) renderKey(b *builder) (string, bool) {
	if e.key.plain() {
		return e.key.source, b.pay(len(e.key.source)+4, 0)
	}
	value, f := b.machine.evaluate(e.key)
	if f != nil {
		b.report(f, e.key.source)
		return "", false
	}
	key, isText := value.(string)
	switch {
	case !isText:
		b.report(faultf(-1, "make it text: {{ … | toString }}", "a key must be text, not %s", kindName(value)), e.key.source)
		return "", false
	case key == "":
		b.report(faultf(-1, `write {{ … | default "..." }} to say what to use then`, "the key becomes empty"), e.key.source)
		return "", false
	}
	if !utf8.ValidString(key) {
		b.report(faultAt(-1, errNotText), e.key.source)
		return "", false
	}
	return key, b.pay(len(key)+4, 0)
}

// errNotText says what JSON cannot carry.
var errNotText = errors.New("the result is not valid UTF-8")

// copy makes the value of an expression part of an object: numbers that JSON
// has, nothing shared.
func (b *builder) copy(value any, depth int) (any, error) {
	budget := b.machine.budget
	if depth > MaxDepth {
		return nil, budget.exhaust(&LimitError{What: "levels of lists and maps", Limit: MaxDepth})
	}
	if err := budget.step(1); err != nil {
		return nil, err
	}
	switch v := value.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errNotText
		}
		return v, budget.output(len(v) + 2)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errNotFinite
		}
		return v, budget.output(8)
	case []any:
		if err := budget.spendOn(2*len(v), listBytes(len(v))); err != nil {
			return nil, err
		}
		list := make([]any, len(v))
		for i, element := range v {
			made, err := b.copy(element, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = made
		}
		return list, nil
	}
	fields, isMap := asMap(value)
	if !isMap {
		return value, budget.output(8)
	}
	if err := budget.spendOn(4*len(fields), mapBytes(len(fields))); err != nil {
		return nil, err
	}
	made := make(map[string]any, len(fields))
	for _, key := range keysOf(fields) {
		if key == "" {
			return nil, hintf("leave it out, or give it a name", "a key of the map is empty")
		}
		if !utf8.ValidString(key) {
			return nil, errNotText
		}
		element, err := b.copy(fields[key], depth+1)
		if err != nil {
			return nil, err
		}
		if err := budget.output(len(key)); err != nil {
			return nil, err
		}
		made[key] = element
	}
	return made, nil
}
