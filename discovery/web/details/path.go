package details

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"akri.sh/akri/discovery/details"
)

// maxPathSteps bounds a path.
const maxPathSteps = 32

// Lookup returns the value at a path such as "info.ports[0].name" in decoded JSON. The
// empty path is the value as a whole.
func Lookup(value any, path string) (any, bool) {
	steps, ok := stepsOf(path)
	if !ok {
		return nil, false
	}
	for _, step := range steps {
		switch current := value.(type) {
		case map[string]any:
			if value, ok = current[step]; !ok {
				return nil, false
			}
		case []any:
			index, err := strconv.Atoi(step)
			if err != nil || index < 0 || index >= len(current) {
				return nil, false
			}
			value = current[index]
		default:
			return nil, false
		}
	}
	return value, true
}

// Scalar returns the text of a string, number or Boolean at a path.
func Scalar(value any, path string) (string, bool) {
	found, ok := Lookup(value, path)
	if !ok {
		return "", false
	}
	switch found := found.(type) {
	case string:
		return found, true
	case json.Number:
		return found.String(), true
	case bool:
		return strconv.FormatBool(found), true
	}
	return "", false
}

// stepsOf returns the keys and indexes of a path.
func stepsOf(path string) (steps []string, ok bool) {
	if path == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(path, ".") {
		key, rest, indexed := strings.Cut(part, "[")
		if key == "" && (!indexed || len(steps) > 0) {
			return nil, false
		}
		if key != "" {
			steps = append(steps, key)
		}
		for indexed {
			var index string
			if index, rest, ok = strings.Cut(rest, "]"); !ok {
				return nil, false
			}
			if _, err := strconv.ParseUint(index, 10, 31); err != nil {
				return nil, false
			}
			steps = append(steps, index)
			if rest == "" {
				break
			}
			if !strings.HasPrefix(rest, "[") {
				return nil, false
			}
			rest = rest[1:]
		}
	}
	return steps, len(steps) <= maxPathSteps
}

// checkPaths returns the mistake in the first of some paths, by place.
func checkPaths(paths map[string]string) error {
	for _, place := range slices.Sorted(maps.Keys(paths)) {
		if _, ok := stepsOf(paths[place]); !ok {
			return details.Faultf(place, "%q is not a path", paths[place]).Hintf("write keys and indexes such as info.ports[0].name")
		}
	}
	return nil
}

// validName reports whether a property can become an environment variable.
func validName(name string) bool {
	for i, c := range name {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
