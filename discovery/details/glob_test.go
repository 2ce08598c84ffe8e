package details_test

import (
	"strings"
	"testing"

	"akri.sh/akri/discovery/details"
)

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"?", "ü", true}, {"??", "ü", false}, {"a?c", "ac", false}, {"*a*b*", "xxaxxbxx", true}, {"[a]", "a", false}, {"[a]", "[a]", true},
		{"*ab", "aab", true}, {"a*b*c", "a1b2b3c", true}, {"ab*ba", "aba", false}, {"a*b*c", "acb", false}, {"**", "x", true},
	} {
		if got := details.Glob(tc.pattern, tc.text); got != tc.want {
			t.Errorf("%q and %q: %v", tc.pattern, tc.text, got)
		}
	}
}

// TestGlobIsFast: a pattern of many stars does not take exponential time.
func TestGlobIsFast(t *testing.T) {
	if details.Glob(strings.Repeat("a*", 128)+"b", strings.Repeat("a", 255)) {
		t.Error("it matches")
	}
}
