package details

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// globMatch compares a value with a glob that has no alternatives.
func globMatch(t *testing.T, glob, value string) bool {
	t.Helper()
	p, err := newPattern(glob, false, maxInstructions)
	if err != nil {
		t.Fatalf("%q: %v", glob, err)
	}
	return p.Matches(value)
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern string
		matches string // values, separated by commas
		not     string
	}{
		{"", ",", "a"},
		{"*", ",a,a/b", ""},
		{"video[0-9]*", "video0,video10,video0x", "video,videoa,xvideo0"},
		{"tty?", "ttyS,tty0,tty/", "tty,tty10"},
		{"*a*b", "ab,xayb,aabb,a/b", "a,ba,abx"},
		{"[!0-9]*", "a,ab", "1,1a"},
		{"[^0-9]*", "a", "1"},
		{"[]a]", "],a", "b"},
		{"[!]a]", "b", "],a"},
		{"[a-]", "a,-", "b"},
		{"[abc", "[abc", "a"},
		{"[", "[", "a"},
		{"[]", "[]", "]"},
		{"a\\*", "a*", "ab"},
		{"a\\", "a\\", "a"},
		{"[\\]]", "]", "\\"},
		{"[[:digit:]][[:alpha:]]", "1a,9Z", "a1,11"},
		{"[![:space:]]", "a", " "},
		{"[[:xdigit:]_]*", "f,_,0", "g"},
		{"[[:nothing:]]", "", "a,:"},
		{"[[:nothing:]a]", "a", "n,:"},
		{"a*b", "a\nb,ab", "a\nbc"},      // some attributes have several lines
		{"[[:digit:]", "[d,[:", "1,[,d"}, // a bracket, and a set
		{"[][:digit:]", "[]d", "],1"},
		{"[z-ab]", "b", "a,z,-"},
		{"[^^]", "a", "^"},
		{"[a\\-c]", "a,-,c", "b"},
		{"é?", "éa,éé", "é"},
		{"[à-ü]", "é", "e"},
	} {
		check := func(values string, want bool) {
			for value := range strings.SplitSeq(values, ",") {
				if got := globMatch(t, tc.pattern, value); got != want {
					t.Errorf("%q matches %q: %t, want %t", tc.pattern, value, got, want)
				}
			}
		}
		if tc.matches != "" {
			check(tc.matches, true)
		}
		if tc.not != "" {
			check(tc.not, false)
		}
	}
}

// FuzzGlob compares globs with those of Go, which have fewer features.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"a*b?[c-e]", "axxbyd"}, {"[[:alpha:]]*", "a"}, {"**[^a]*", "bab"}, {"[", "["}, {`\[*`, "[x"}, {`[\]-a]`, "_"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		if len(pattern) > 100 || strings.Contains(pattern, "|") || !utf8.ValidString(pattern) || !utf8.ValidString(value) {
			return
		}
		got := globMatch(t, pattern, value)
		want, err := path.Match(pattern, value)
		if err != nil || strings.ContainsAny(pattern, "/!") || strings.Contains(pattern, "[:") || strings.Contains(value, "/") {
			return
		}
		if got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, value, got, want)
		}
	})
}
