package expr

import (
	"strings"
	"testing"
)

// none is a language without variables.
type none struct{}

func (none) Lookup(string) (*Variable, error) { return nil, nil }
func (none) Variables() []string              { return nil }
func (none) Properties() string               { return "" }

// TestSuggestions checks that the search for similar names, the most expensive part of
// compiling, is done for 50 faults of a text only, and that one of them says how to write
// what is meant for another program. All faults are reported.
func TestSuggestions(t *testing.T) {
	const limit = 50
	_, report := Compile(strings.Repeat("{{ uper }}", limit+1), none{})
	if len(report.Faults) != limit+1 {
		t.Fatalf("%d faults, want %d", len(report.Faults), limit+1)
	}
	for i, f := range report.Faults {
		suggested := strings.HasPrefix(f.Hint, "did you mean upper?")
		if strings.Contains(f.Hint, "for {{ of another program") != (i == 0) {
			t.Errorf("fault %d has the hint %q", i, f.Hint)
		}
		if f.Error() != "there is no variable or function uper" || suggested != (i < limit) || f.Offset != 10*i+3 {
			t.Errorf("fault %d is %q with the hint %q at %d", i, f, f.Hint, f.Offset)
		}
	}
}

// TestShownNames checks that messages quote only the beginning of long names.
func TestShownNames(t *testing.T) {
	long := strings.Repeat("x", 100)
	for source, want := range map[string]string{
		"{{ " + long + " }}":                         "there is no variable or function " + long[:60] + "…",
		"{{ `" + long + "` 1 }}":                     "`" + long[:36] + "… is a value and takes no arguments",
		"{{ ." + long + " }}":                        "." + long[:36] + "… has no meaning here: the dot has a value only inside range and with",
		"{{ $" + long + " }}":                        `undefined variable "$` + long[:96] + "…",
		"{{ `" + strings.Repeat("y", 200) + "`.x }}": "a literal has no fields",
		"{{ 1" + long + " }}":                        `bad number syntax: "1x"`,
	} {
		_, report := Compile(source, none{})
		if len(report.Faults) != 1 || report.Faults[0].Error() != want {
			t.Errorf("%.20s…: got %v\nwant %s", source, report.Faults, want)
		}
	}
}
