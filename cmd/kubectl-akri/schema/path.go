package schema

import (
	"strconv"
	"strings"

	"akri.sh/akri/templating"
)

func keys(names ...string) templating.Path {
	var p templating.Path
	for _, key := range names {
		p = append(p, templating.Key(key))
	}
	return p
}

// lookup returns the value at a path, or nil.
func lookup(value any, path templating.Path) any {
	for _, step := range path {
		fields, _ := value.(map[string]any)
		elements, _ := value.([]any)
		switch {
		case !step.IsIndex:
			value = fields[step.Key]
		case step.Index < len(elements):
			value = elements[step.Index]
		default:
			return nil
		}
	}
	return value
}

// Follow returns the path that Kubernetes writes as spec.list[0].key or spec.map[key].
// Keys may contain dots and brackets, too: the longest that the object has counts. What
// the object lacks is a single key.
func Follow(value any, text string) templating.Path {
	var found templating.Path
	text = strings.TrimPrefix(text, "<nil>") // of the object as a whole
	for text = strings.TrimPrefix(text, "."); text != ""; text = strings.TrimPrefix(text, ".") {
		step, rest := templating.Key(text), ""
		switch v := value.(type) {
		case map[string]any:
			longest := -1
			for key := range v {
				after, fits := strings.CutPrefix(text, "["+key+"]")
				if !fits {
					after, fits = strings.CutPrefix(text, key)
				}
				if fits && (after == "" || after[0] == '.' || after[0] == '[') && len(key) > longest {
					longest, step, rest = len(key), templating.Key(key), after
				}
			}
			value = v[step.Key]
		case []any:
			number, after, _ := strings.Cut(strings.TrimPrefix(text, "["), "]")
			if index, err := strconv.Atoi(number); err == nil && index < len(v) {
				step, rest, value = templating.Index(index), after, v[index]
			}
		}
		found, text = append(found, step), rest
	}
	return found
}
