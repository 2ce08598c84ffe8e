package templating

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is a compiled list of templates. It is immutable and safe for concurrent
// use. A nil *Set is an empty list.
type Set struct {
	level     Level
	templates []*template
	kinds     []schema.GroupVersionKind
	keys      []string
}

// Level is the list that was compiled.
func (s *Set) Level() Level {
	if s == nil {
		return InstanceLevel
	}
	return s.level
}

// Len is the number of templates.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.templates)
}

// Kinds is what the templates make: sorted, without repetition. No values can
// add to it.
func (s *Set) Kinds() []schema.GroupVersionKind {
	if s == nil {
		return nil
	}
	return slices.Clone(s.kinds)
}

// PropertyKeys is the keys of device properties that the templates mention by
// name, sorted. A key that a template computes is not among them.
func (s *Set) PropertyKeys() []string {
	if s == nil {
		return nil
	}
	return slices.Clone(s.keys)
}

func keysOfSet(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
