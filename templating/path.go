package templating

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"akri.sh/akri/templating/internal/fault"
)

// Path leads from the root of a template to a value in it. Keys are as the
// template writes them, expressions included.
type Path []Step

// Step is one step of a [Path]: into a map by key or into a list by index.
type Step struct {
	Key   string
	Index int // valid if IsIndex is set
	// IsIndex distinguishes an index from a key.
	IsIndex bool
}

// Key returns a step into a map.
func Key(key string) Step { return Step{Key: key} }

// Index returns a step into a list.
func Index(index int) Step { return Step{Index: index, IsIndex: true} }

// Keys returns a path of keys.
func Keys(keys ...string) (path Path) {
	for _, key := range keys {
		path = append(path, Key(key))
	}
	return path
}

// String returns the path as in spec.ports[0].port, or
// limits["akri.sh/{{ INSTANCE_NAME }}"] if a key is not a plain word.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case step.IsIndex:
			b.WriteString("[" + strconv.Itoa(step.Index) + "]")
		case !fault.IsPlain(step.Key):
			b.WriteString("[" + fault.Quote(step.Key, fault.MaxQuoted) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.Key)
		}
	}
	return b.String()
}

// Below returns the path as the continuation of a place, as in spec.ports[0] below
// instanceBrokerResources[2].
func (p Path) Below(place string) string {
	path := p.String()
	if path == "" || place == "" || path[0] == '[' {
		return place + path
	}
	return place + "." + path
}

// with returns a new path with more steps. It does not share memory with p.
func (p Path) with(steps ...Step) Path {
	return append(slices.Clip(p), steps...)
}

// In returns the value at a path in an object and, if that lacks a part of the path, the value
// before it.
func (p Path) In(object any) (value any, found bool) {
	for _, step := range p {
		fields, _ := object.(map[string]any)
		elements, _ := object.([]any)
		below, found := fields[step.Key]
		if step.IsIndex {
			if found = step.Index < len(elements); found {
				below = elements[step.Index]
			}
		}
		if !found {
			return object, false
		}
		object = below
	}
	return object, true
}

// Lookup returns the value at a path in an object, or nil.
func (p Path) Lookup(object any) any {
	if value, found := p.In(object); found {
		return value
	}
	return nil
}

// PathIn returns the path that the API server writes as spec.list[0].key, spec.map[key] or, in
// server-side apply, .spec.list[key="value"].key: as far as an object has it, and a key that it
// lacks. Keys may contain dots and brackets, too: the longest that the object has counts.
func PathIn(object any, text string) (path Path) {
	text = strings.TrimPrefix(text, "<nil>") // of the object as a whole
	for text = strings.TrimPrefix(text, "."); text != ""; text = strings.TrimPrefix(text, ".") {
		var step Step
		rest, found := "", false
		switch value := object.(type) {
		case map[string]any:
			longest := -1
			for key := range value {
				after, fits := strings.CutPrefix(text, "["+key+"]")
				if !fits {
					after, fits = strings.CutPrefix(text, key)
				}
				if fits && (after == "" || after[0] == '.' || after[0] == '[') && len(key) > longest {
					longest, step, rest, found = len(key), Key(key), after, true
				}
			}
			object = value[step.Key]
		case []any:
			selector, after := brackets(text)
			if index := element(value, selector); selector != "" && index >= 0 {
				step, rest, found, object = Index(index), after, true, value[index]
			}
		}
		if !found {
			if end := strings.IndexAny(text+".", ".["); end > 0 {
				path = append(path, Key(text[:end]))
			}
			return path
		}
		path, text = append(path, step), rest
	}
	return path
}

// brackets splits [INSIDE]AFTER. It ignores brackets in quotes.
func brackets(text string) (inside, after string) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ']' && !quoted:
			return text[1:i], text[i+1:]
		}
	}
	return "", ""
}

// element returns the index of the element that is selected by its index, its value or some of
// its fields, or -1.
func element(list []any, selector string) int {
	if index, err := strconv.Atoi(selector); err == nil && index < len(list) {
		return index
	}
	wanted := map[string]string{}
	for pair := range strings.SplitSeq(selector, ",") {
		name, value, _ := strings.Cut(pair, "=")
		wanted[name] = strings.Trim(value, `"`)
	}
	return slices.IndexFunc(list, func(element any) bool {
		fields, isMap := element.(map[string]any)
		for name, value := range wanted {
			if !isMap {
				return name == "" && fmt.Sprint(element) == value
			}
			if actual, found := fields[name]; found && fmt.Sprint(actual) != value {
				return false // a missing key has its default
			}
		}
		return isMap
	})
}
