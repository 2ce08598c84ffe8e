package templating

import (
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

// follow returns the value at a path of keys, or nil.
func (p Path) follow(value any) any {
	for _, step := range p {
		m, _ := value.(map[string]any)
		value = m[step.Key]
	}
	return value
}
