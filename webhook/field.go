package webhook

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fieldPath is the path of a field in an object: keys of maps as strings, indexes of
// lists as ints.
type fieldPath []any

// String returns the path as in spec.ports[0].port. Keys that would be ambiguous
// are in brackets.
func (f fieldPath) String() string {
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

// locate parses a path as the API server writes it, as far as it exists in an
// object: spec.ports[0].port, data[key], and, as server-side apply writes it,
// .spec.ports[port=80,protocol="TCP"].name. A leading dot is optional.
func locate(content map[string]any, text string) fieldPath {
	var path fieldPath
	var current any = content
	rest := strings.TrimPrefix(text, ".")
	for rest != "" && rest != "<nil>" {
		var step any
		switch rest[0] {
		case '[':
			inside, after, ok := brackets(rest)
			if !ok {
				return path
			}
			step, rest = element(current, inside), strings.TrimPrefix(after, ".")
		default:
			step, rest = key(current, rest)
		}
		next, found := child(current, step)
		if !found {
			if name, ok := step.(string); ok && name != "" && len(path) > 0 {
				return append(path, name) // a field that is missing
			}
			return path
		}
		path, current = append(path, step), next
	}
	return path
}

// brackets splits [INSIDE]AFTER. It ignores brackets in quotes.
func brackets(text string) (inside, after string, ok bool) {
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

// key returns the longest key of a map that text starts with, because keys may
// contain dots. Otherwise it returns the text up to the next dot or bracket.
func key(current any, text string) (string, string) {
	if m, ok := current.(map[string]any); ok {
		longest := ""
		for name := range m {
			after, ok := strings.CutPrefix(text, name)
			if ok && len(name) > len(longest) && (after == "" || after[0] == '.' || after[0] == '[') {
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

// element returns the index of a list, or the key of a map, that is in brackets.
func element(current any, inside string) any {
	list, ok := current.([]any)
	if !ok {
		return strings.Trim(inside, `"`)
	}
	if index, err := strconv.Atoi(inside); err == nil {
		return index
	}
	wanted := map[string]string{}
	for pair := range strings.SplitSeq(inside, ",") {
		name, value, _ := strings.Cut(pair, "=")
		wanted[name] = strings.Trim(value, `"`)
	}
	index := slices.IndexFunc(list, func(item any) bool {
		m, ok := item.(map[string]any)
		for name, value := range wanted {
			if !ok {
				return name == "" && fmt.Sprint(item) == value
			}
			if actual, found := m[name]; found && fmt.Sprint(actual) != value {
				return false // a missing key has its default
			}
		}
		return ok
	})
	return index
}

// child returns the value of a key or index.
func child(current, step any) (any, bool) {
	switch step := step.(type) {
	case string:
		m, _ := current.(map[string]any)
		value, found := m[step]
		return value, found
	case int:
		if list, ok := current.([]any); ok && step >= 0 && step < len(list) {
			return list[step], true
		}
	}
	return nil, false
}

// value returns the value of the field in an object or template.
func (f fieldPath) value(content map[string]any) (any, bool) {
	var current any = content
	for _, step := range f {
		next, found := child(current, step)
		if !found {
			return nil, false
		}
		current = next
	}
	return current, true
}
