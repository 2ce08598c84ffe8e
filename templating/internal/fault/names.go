package fault

import (
	"slices"
	"strings"
)

// maxKnown is how many known names a message lists.
const maxKnown = 10

// ListNames lists names in a message: sorted, at most maxKnown of them.
func ListNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	names = slices.Sorted(slices.Values(names))
	more := ""
	if len(names) > maxKnown {
		names, more = names[:maxKnown], ", …"
	}
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = name
		if !IsPlain(name) {
			shown[i] = Quote(name, MaxName)
		}
	}
	return strings.Join(shown, ", ") + more
}
