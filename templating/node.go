package templating

import (
	"errors"
	"math"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/expr"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// node is a compiled value of a template. Each rendering returns a new value; false
// means that a mistake was reported.
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

// textNode is a string with expressions.
type textNode struct{ text *expr.Text }

func (n *textNode) render(b *builder) (any, bool) {
	v, f := b.machine.Evaluate(n.text)
	if f != nil {
		b.reportIn(n.text, f)
		return nil, false
	}
	if v == nil {
		const hint = `provide a default: {{ … | default "..." }}, or write null without an expression`
		b.reportIn(n.text, fault.Newf(fault.Whole, hint, "the expression yields nothing"))
		return nil, false
	}
	if s, ok := v.(string); ok && utf8.ValidString(s) {
		return v, b.pay(len(s)+2, budget.StringHeader)
	}
	copied, err := copyValue(b.machine.Budget, v, 0)
	if err != nil {
		b.reportIn(n.text, fault.At(fault.Whole, err))
		return nil, false
	}
	return copied, true
}

type listNode []node

func (n listNode) render(b *builder) (any, bool) {
	if !b.pay(2, budget.ListBytes(len(n))) {
		return nil, false
	}
	list := make([]any, len(n))
	complete := true
	for i, element := range n {
		if element == nil {
			continue // reported by the compiler
		}
		b.path = append(b.path, Index(i))
		v, ok := element.render(b)
		b.path = b.path[:len(b.path)-1]
		list[i] = v
		if complete = complete && ok; b.exhausted() {
			return nil, false
		}
	}
	return list, complete
}

type entry struct {
	key   *expr.Text
	value node
}

type mapNode struct {
	entries     []entry // sorted by the keys' source
	expressions bool    // in keys
}

func (n *mapNode) render(b *builder) (any, bool) {
	if !b.pay(2, budget.MapBytes(len(n.entries))) {
		return nil, false
	}
	rendered := make(map[string]any, len(n.entries))
	var sources map[string]string // of the keys rendered so far
	if n.expressions {
		sources = make(map[string]string, len(n.entries))
	}
	complete := true
	for _, e := range n.entries {
		b.path = append(b.path, Key(e.key.Source()))
		key, ok := e.renderKey(b)
		if ok && n.expressions {
			if other, found := sources[key]; found {
				b.reportf(b.path, "choose keys that differ", "the keys %s and %s become the same",
					fault.Quote(other, fault.MaxQuoted), fault.Quote(e.key.Source(), fault.MaxQuoted))
				ok = false
			}
			sources[key] = e.key.Source()
		}
		if ok && e.value != nil {
			rendered[key], ok = e.value.render(b)
		}
		b.path = b.path[:len(b.path)-1]
		if complete = complete && ok; b.exhausted() {
			return nil, false
		}
	}
	return rendered, complete
}

func (e *entry) renderKey(b *builder) (string, bool) {
	if e.key.IsPlain() {
		return e.key.Source(), b.pay(len(e.key.Source())+4, 0)
	}
	v, f := b.machine.Evaluate(e.key)
	if f != nil {
		b.reportIn(e.key, f)
		return "", false
	}
	key, isText := v.(string)
	switch {
	case !isText:
		f = fault.Newf(fault.Whole, "make it a string: {{ … | toString }}", "a key must be a string, not %s", value.KindName(v))
	case key == "":
		f = fault.Newf(fault.Whole, `provide a default: {{ … | default "..." }}`, "the key becomes empty")
	case !utf8.ValidString(key):
		f = fault.At(fault.Whole, errInvalidUTF8)
	}
	if f != nil {
		b.reportIn(e.key, f)
		return "", false
	}
	return key, b.pay(len(key)+4, 0)
}

// errInvalidUTF8 reports a text that JSON cannot represent.
var errInvalidUTF8 = errors.New("the result is not valid UTF-8")

// copyValue copies the value of an expression into an object. The copy contains
// only what JSON can represent and shares nothing with v.
func copyValue(b *budget.Budget, v any, depth int) (any, error) {
	if err := b.Descend(depth); err != nil {
		return nil, err
	}
	if err := b.Step(1); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return nil, errInvalidUTF8
		}
		return v, b.Output(len(v) + 2)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, value.ErrNotFinite
		}
		return v, b.Output(8)
	case []any:
		return copyList(b, v, depth)
	}
	if fields, ok := value.AsMap(v); ok {
		return copyMap(b, fields, depth)
	}
	return v, b.Output(8)
}

func copyList(b *budget.Budget, list []any, depth int) (any, error) {
	if err := b.Spend(2*len(list), budget.ListBytes(len(list))); err != nil {
		return nil, err
	}
	copied := make([]any, len(list))
	for i, element := range list {
		var err error
		if copied[i], err = copyValue(b, element, depth+1); err != nil {
			return nil, err
		}
	}
	return copied, nil
}

func copyMap(b *budget.Budget, fields map[string]any, depth int) (any, error) {
	if err := b.Spend(4*len(fields), budget.MapBytes(len(fields))); err != nil {
		return nil, err
	}
	copied := make(map[string]any, len(fields))
	for _, key := range value.Keys(fields) {
		if key == "" {
			return nil, fault.Hintf("leave it out, or give it a name", "a key of the map is empty")
		}
		if !utf8.ValidString(key) {
			return nil, errInvalidUTF8
		}
		element, err := copyValue(b, fields[key], depth+1)
		if err != nil {
			return nil, err
		}
		if err := b.Output(len(key)); err != nil {
			return nil, err
		}
		copied[key] = element
	}
	return copied, nil
}

// literalChild returns the value that the author wrote under a literal key, or
// nil.
func literalChild(of node, key string) node {
	m, _ := of.(*mapNode)
	if m == nil {
		return nil
	}
	for _, e := range m.entries {
		if e.key.IsPlain() && e.key.Source() == key {
			return e.value
		}
	}
	return nil
}
