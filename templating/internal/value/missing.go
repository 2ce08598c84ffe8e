package value

import (
	"cmp"

	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating/internal/fault"
)

// Missing returns the error for a key that a map does not have. Written is how
// the author wrote the map; it may be empty.
func Missing(of any, key, written string) error {
	m, _ := AsMap(of)
	what, unwritten, known := "key", "MAP", Keys(m)
	if _, property := of.(Properties); property {
		what, unwritten = "property", "INSTANCE_PROPERTIES"
	}
	written = cmp.Or(written, unwritten)
	quoted := fault.Quote(key, fault.MaxName)
	hint := "write {{ get " + text.Truncate(written, fault.MaxName) + " " + quoted + ` | default "..." }} if it is optional`
	if near := text.Nearest(key, known); near != "" {
		hint = "did you mean " + fault.Quote(near, fault.MaxName) + "? " + hint
	}
	return fault.Hintf(hint, "%s %s does not exist; known: %s", what, quoted, fault.ListNames(known))
}
