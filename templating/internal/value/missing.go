package value

import (
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/fault"
)

// MissingKeyError reports that a template reads a key that a map does not have.
type MissingKeyError struct {
	Key      string
	Property bool // Key is a property of the device
	known    []string
}

func (e *MissingKeyError) Error() string {
	what := "key"
	if e.Property {
		what = "property"
	}
	return what + " " + fault.Quote(e.Key, fault.MaxName) + " does not exist; known: " + fault.ListNames(e.known)
}

// Missing returns the error for a key that a map does not have. Written is how
// the author wrote the map; it may be empty.
func Missing(of any, key, written string) error {
	m, _ := AsMap(of)
	_, property := of.(Properties)
	e := &MissingKeyError{Key: key, Property: property, known: Keys(m)}
	if written == "" {
		written = "MAP"
	}
	hint := "write {{ get " + text.Truncate(written, fault.MaxName) + " " + fault.Quote(key, fault.MaxName) + ` | default "..." }} if it is optional`
	if near := fault.Nearest(key, e.known); near != "" {
		hint = "did you mean " + fault.Quote(near, fault.MaxName) + "? " + hint
	}
	return &fault.Hinted{Cause: e, Hint: hint}
}
