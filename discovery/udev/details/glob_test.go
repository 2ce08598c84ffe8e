package details

import (
	"strings"
	"testing"
	"time"
)

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
		{"é?", "éa,éé", "é"},
		{"[à-ü]", "é", "e"},
	} {
		check := func(values string, want bool) {
			for value := range strings.SplitSeq(values, ",") {
				if got := globMatch(tc.pattern, value); got != want {
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

// TestGlobIsFast has a pattern for which trying all ways to match takes centuries.
func TestGlobIsFast(t *testing.T) {
	began := time.Now()
	if globMatch(strings.Repeat("a*", 200)+"b", strings.Repeat("a", 4096)) {
		t.Error("matches")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// naiveGlob tries all ways to match.
func naiveGlob(pattern, value string) bool {
	switch {
	case pattern == "":
		return value == ""
	case pattern[0] == '*':
		return naiveGlob(pattern[1:], value) || value != "" && naiveGlob(pattern, value[1:])
	case value == "":
		return false
	}
	patternWidth, valueWidth, ok := matchOne(pattern, value)
	return ok && naiveGlob(pattern[patternWidth:], value[valueWidth:])
}

func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{{"a*b?[c-e]", "axxbyd"}, {"[[:alpha:]]*", "a"}, {"**[!a]*", "bab"}, {"[", "["}, {`\[*`, "[x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, value string) {
		ascii := func(s string) bool { return strings.IndexFunc(s, func(c rune) bool { return c >= 0x80 }) < 0 }
		if len(pattern) > 12 || len(value) > 12 || !ascii(pattern) || !ascii(value) {
			globMatch(pattern, value)
			return
		}
		if got, want := globMatch(pattern, value), naiveGlob(pattern, value); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, value, got, want)
		}
	})
}
