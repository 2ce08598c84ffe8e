package webhook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// field is a place inside an object: map keys as strings, places in lists as
// ints.
type field []any

// String is spec.ports[0].port; a key that would be misread is in brackets.
func (f field) String() string {
	var b strings.Builder
	for _, step := range f {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		case string:
			if plainKey.MatchString(step) {
				if b.Len() > 0 {
					b.WriteByte('.')
				}
				b.WriteString(step)
			} else {
				fmt.Fprintf(&b, "[%s]", step)
			}
		}
	}
	return b.String()
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][-A-Za-z0-9_$]*$`)

// locate reads a field as the API server writes it, as far as it exists in an
// object. It knows spec.ports[0].port, data[key], and the way of server-side
// apply: .spec.ports[port=80,protocol="TCP"].name, without the first dot or with.
func locate(content map[string]any, text string) field {
	var path field
	var here any = content
	rest := strings.TrimPrefix(text, ".")
	for rest != "" && rest != "<nil>" {
		var step any
		switch {
		case rest[0] == '[':
			inside, after, closed := brackets(rest)
			if !closed {
				return path
			}
			step, rest = element(here, inside), strings.TrimPrefix(after, ".")
		default:
			step, rest = key(here, rest)
		}
		next, found := child(here, step)
		if !found {
			if name, is := step.(string); is && name != "" && len(path) > 0 {
				return append(path, name) // a field that is missing
			}
			return path
		}
		path, here = append(path, step), next
	}
	return path
}

// brackets splits [INSIDE]AFTER; brackets in quotes do not count.
func brackets(text string) (inside, after string, closed bool) {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quoted:
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ']' && !quoted:
			return text[1:i], text[i+1:], true
		}
	}
	return "", "", false
}

// key takes the longest key of a map that text begins with, since keys may hold
// dots; else the text up to the next dot or bracket.
func key(here any, text string) (string, string) {
	if m, is := here.(map[string]any); is {
		longest := ""
		for name := range m {
			after, begins := strings.CutPrefix(text, name)
			if begins && len(name) > len(longest) && (after == "" || after[0] == '.' || after[0] == '[') {
				longest = name
			}
		}
		if longest != "" {
			return longest, strings.TrimPrefix(text[len(longest):], ".")
		}
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimPrefix(text[end:], ".")
}

// element is the place in a list, or the key of a map, that brackets name.
func element(here any, inside string) any {
	list, is := here.([]any)
	if !is {
		return strings.Trim(inside, `"`)
	}
	if index, err := strconv.Atoi(inside); err == nil {
		return index
	}
	wanted := map[string]string{}
	for _, pair := range strings.Split(inside, ",") {
		name, value, _ := strings.Cut(pair, "=")
		wanted[name] = strings.Trim(value, `"`)
	}
	index := slices.IndexFunc(list, func(item any) bool {
		m, is := item.(map[string]any)
		for name, value := range wanted {
			if !is {
				return name == "" && fmt.Sprint(item) == value
			}
			if have, found := m[name]; found && fmt.Sprint(have) != value {
				return false // a key that is not there has a default
			}
		}
		return is
	})
	return index
}

func child(here, step any) (any, bool) {
	switch step := step.(type) {
	case string:
		m, _ := here.(map[string]any)
		value, found := m[step]
		return value, found
	case int:
		if list, is := here.([]any); is && step >= 0 && step < len(list) {
			return list[step], true
		}
	}
	return nil, false
}

// at is the value at a field of an object or of a template.
func (f field) at(content map[string]any) (any, bool) {
	var here any = content
	for _, step := range f {
		next, found := child(here, step)
		if !found {
			return nil, false
		}
		here = next
	}
	return here, true
}

// expression is the inside of a text that is one expression and nothing else.
func expression(text string) (string, bool) {
	match := wholeExpression.FindStringSubmatch(text)
	if match == nil || strings.Contains(match[1], "{{") || strings.Contains(match[1], "}}") {
		return "", false
	}
	return match[1], true
}

var wholeExpression = regexp.MustCompile(`^\s*\{\{-?\s*(.*?)\s*-?\}\}\s*$`)

// hasExpression tells whether some text in a template, or a key, is an expression.
func hasExpression(value any) bool {
	return anyText(value, func(text string) bool { return strings.Contains(text, "{{") })
}

// readsProperties tells whether some text in a template has to do with the
// properties of devices.
func readsProperties(value any) bool {
	return anyText(value, func(text string) bool {
		return strings.Contains(text, "{{") && (strings.Contains(text, "INSTANCE_PROPERTIES") || strings.Contains(text, "INSTANCES"))
	})
}

// anyText tells whether one of the texts and keys in a value fulfils a condition.
func anyText(value any, fulfils func(string) bool) bool {
	switch value := value.(type) {
	case string:
		return fulfils(value)
	case []any:
		return slices.ContainsFunc(value, func(element any) bool { return anyText(element, fulfils) })
	case map[string]any:
		for key, element := range value {
			if fulfils(key) || anyText(element, fulfils) {
				return true
			}
		}
	}
	return false
}
