package templating

import (
	"strconv"
	"strings"
)

// Path leads from the root of a template to a value in it. Keys are written as
// the template writes them, expressions included.
type Path []Step

// Step is one step of a [Path]: into a map by key or into a list by index.
type Step struct {
	Key   string
	Index int // counts when IsIndex is set
	// IsIndex tells an index from a key.
	IsIndex bool
}

// Key is a step into a map.
func Key(key string) Step { return Step{Key: key} }

// Index is a step into a list.
func Index(index int) Step { return Step{Index: index, IsIndex: true} }

// String writes the path as people do: spec.ports[0].port, and
// limits["akri.sh/{{ INSTANCE_NAME }}"] where a key is not a plain word.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case step.IsIndex:
			b.WriteString("[" + strconv.Itoa(step.Index) + "]")
		case !plainKey(step.Key):
			b.WriteString("[" + quote(step.Key, maxQuoted) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step.Key)
		}
	}
	return b.String()
}

// with is a new path one step longer; the receiver keeps its own memory.
func (p Path) with(steps ...Step) Path {
	return append(p[:len(p):len(p)], steps...)
}

func plainKey(key string) bool {
	if key == "" || len(key) > maxQuoted {
		return false
	}
	for i := range len(key) {
		c := key[i]
		if !isWordByte(c) && c != '-' {
			return false
		}
	}
	return true
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
