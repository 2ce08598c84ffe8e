package details

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"

	"akri.sh/akri/internal/finding"
)

// Fault is a mistake in discoveryDetails. It has the fields Path, such as udevRules[0], Cause
// and Hint, which says what to write instead and may be empty.
type Fault struct {
	finding.Mistake

	line  int  // in the text, if Path is not known; from 1
	ofKey bool // the mistake is the last key of Path, not its value
}

// Faultf returns a Fault without a hint. The path is the place, such as udevRules[0], and
// empty for the text as a whole; the rest says what is wrong, in lower case.
func Faultf(path, format string, arguments ...any) *Fault {
	return &Fault{Mistake: finding.Mistake{Path: path, Cause: fmt.Sprintf(format, arguments...)}}
}

// faultAt returns a Fault that has a line instead of a path.
func faultAt(line int, format string, arguments ...any) *Fault {
	fault := Faultf("", format, arguments...)
	fault.line = line
	return fault
}

// Hintf adds what to write instead.
func (f *Fault) Hintf(format string, arguments ...any) *Fault {
	f.Hint = fmt.Sprintf(format, arguments...)
	return f
}

// Error returns the path or the line, the cause and the hint, as far as they are known.
func (f *Fault) Error() string {
	mistake := f.Mistake
	if mistake.Path == "" && f.line > 0 {
		mistake.Path = fmt.Sprintf("line %d", f.line)
	}
	return mistake.Error()
}

// Position returns the line and the column in discoveryDetails, which count from 1. If
// the path does not lead to a value, it is that of the value around it.
func (f *Fault) Position(discoveryDetails string) (line, column int) {
	if f.line > 0 {
		return min(f.line, strings.Count(discoveryDetails, "\n")+1), 1 // YAML knows other line breaks, too
	}
	root, fault := parse(discoveryDetails)
	if fault != nil || root == nil || len(root.Content) == 0 || f.Path == "" {
		return 1, 1
	}
	found, _ := f.find(root)
	return found.Line, found.Column
}

// find returns the place in discoveryDetails, and whether the whole path leads to it.
func (f *Fault) find(root *yamlv3.Node) (found *yamlv3.Node, complete bool) {
	found = root.Content[0]
	for rest := f.Path; rest != ""; {
		key, next, remaining := step(found, rest)
		if next == nil {
			return found, false
		}
		if found, rest = next, remaining; rest == "" && f.ofKey && key != nil {
			found = key
		}
	}
	return found, true
}

// independent reports whether a mistake in what was decoded is not a consequence of others:
// it is in a value that exists, and the others are elsewhere.
func (f *Fault) independent(root *yamlv3.Node, others []*Fault) bool {
	if _, complete := f.find(root); !complete || f.Path == "" {
		return false
	}
	return !slices.ContainsFunc(others, func(other *Fault) bool {
		below, inside := strings.CutPrefix(other.Path, f.Path)
		return inside && (below == "" || below[0] == '.' || below[0] == '[')
	})
}

// Faults returns the mistakes in an error of [Decode] one by one.
func Faults(err error) (all []*Fault) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			all = append(all, Faults(one)...)
		}
	} else if fault, ok := errors.AsType[*Fault](err); ok {
		all = append(all, fault)
	} else if err != nil {
		all = append(all, Faultf("", "%v", err))
	}
	return all
}

// step follows the first part of a path, such as "[0]", "key" or ".key". It returns the
// nodes of the key, if there is one, and of the value, or nil, and the rest of the path.
func step(from *yamlv3.Node, path string) (key, value *yamlv3.Node, rest string) {
	if from.Kind == yamlv3.AliasNode {
		from = from.Alias
	}
	if inner, isIndex := strings.CutPrefix(path, "["); isIndex {
		number, after, _ := strings.Cut(inner, "]")
		index, err := strconv.Atoi(number)
		if err != nil || from.Kind != yamlv3.SequenceNode || index < 0 || index >= len(from.Content) {
			return nil, nil, ""
		}
		return nil, from.Content[index], after
	}
	path = strings.TrimPrefix(path, ".")
	if from.Kind != yamlv3.MappingNode {
		return nil, nil, ""
	}
	// The keys of maps may contain dots and brackets: the longest that fits counts.
	longest := -1
	for i := 0; i+1 < len(from.Content); i += 2 {
		name := from.Content[i].Value
		after, fits := strings.CutPrefix(path, name)
		if fits && (after == "" || after[0] == '.' || after[0] == '[') && len(name) > longest {
			key, value, longest, rest = from.Content[i], from.Content[i+1], len(name), after
		}
	}
	return key, value, rest
}
