package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestQuoting checks how much of an author's text a message quotes.
func TestQuoting(t *testing.T) {
	long := strings.Repeat("x", MaxQuoted)
	for in, want := range map[string]string{
		long:                 `"` + long + `"`,
		long + "x":           `"` + long[:MaxQuoted-3] + `…"`,
		"a\n\x00\"b\\":       `"a\n\x00"b\\"`,
		"\xff":               `"\xff"`,
		"a" + "\u202e" + "b": `"a\u202eb"`,
	} {
		if got := Quote(in, MaxQuoted); got != want {
			t.Errorf("%q is quoted as %s, want %s", in, got, want)
		}
	}
	if !IsPlain(long) || IsPlain(long+"x") || IsPlain("") || IsPlain("a b") {
		t.Error("long, empty or unusual keys are written without quotes, or plain ones with")
	}
}

// TestNames checks how many known names a message lists, and how much of each.
func TestNames(t *testing.T) {
	names := strings.Fields("k j i h g f e d c b a")
	for want, listed := range map[string][]string{
		"none":                                 nil,
		"a, b, c, d, e, f, g, h, i, j":         names[1:],
		"a, b, c, d, e, f, g, h, i, j, …":      names,
		`"` + strings.Repeat("x y", 20) + `…"`: {strings.Repeat("x y", 30)},
	} {
		if got := ListNames(listed); got != want {
			t.Errorf("%q is listed as %s, want %s", listed, got, want)
		}
	}
}

// TestAt checks that an error that becomes a fault keeps what it says of itself.
func TestAt(t *testing.T) {
	hinted := Hintf("hint", "cause")
	for name, tc := range map[string]struct {
		err    error
		offset int
		hint   string
	}{
		"a fault":                 {fmt.Errorf("wrapped: %w", Newf(3, "hint", "cause")), 3, "hint"},
		"one without a place":     {hinted, 7, "hint"},
		"a wrapped one":           {fmt.Errorf("wrapped: %w", hinted), 7, "hint"},
		"an error without a hint": {errors.New("cause"), 7, ""},
	} {
		if f := At(7, tc.err); f.Offset != tc.offset || f.Hint != tc.hint || f.Error() != "cause" {
			t.Errorf("%s: got %+v", name, f)
		}
	}
	if f, ok := errors.AsType[*Fault](hinted); !ok || f.Offset != Whole {
		t.Errorf("a fault without a place has got one: %+v", f)
	}
}
