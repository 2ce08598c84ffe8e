package manifest

import (
	"strings"
	"testing"
)

// TestExcerpt checks that the mark is below its character, whatever precedes it.
func TestExcerpt(t *testing.T) {
	long := strings.Repeat("a", 80) + "X" + strings.Repeat("b", 80)
	for name, tc := range map[string]struct {
		line   string
		column int
		want   rune // the character above the mark
	}{
		"plain":                    {"name: x", 7, 'x'},
		"a tab":                    {"\tname: x", 8, 'x'},
		"non-ASCII letters":        {"näme: ü", 7, 'ü'},
		"a long line":              {long, 81, 'X'},
		"the start of a long line": {long, 1, 'a'},
		"beyond the end":           {"ab", 9, 0},
		"before the start":         {"ab", 0, 'a'},
	} {
		shown, space := excerpt(tc.line, tc.column)
		under := []rune(shown + "\x00")
		at := len([]rune(space)) - 1 // the space after the bar has no character above it
		if at >= len(under) || under[at] != tc.want {
			t.Errorf("%s: the mark is at %d of %q, want it below %q", name, at, shown, tc.want)
		}
		if len(under) > maxExcerpt+3 {
			t.Errorf("%s: %d characters are shown", name, len(under))
		}
	}
}
