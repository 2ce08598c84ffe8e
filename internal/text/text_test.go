package text

import "testing"

func TestTruncate(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		in     string
		max    int
		want   string
	}{
		"Short":        {"a text within the limit is returned unchanged", "camera", 6, "camera"},
		"Long":         {"the ellipsis counts towards the limit", "camera", 5, "ca…"},
		"MultiByte":    {"a character is never cut in two", "köln", 4, "k…"},
		"Invalid":      {"the API server rejects invalid UTF-8", "a\xffb", 9, "a\uFFFDb"},
		"NoRoom":       {"an ellipsis that does not fit is not shown", "camera", 2, ""},
		"EllipsisOnly": {"nothing but the ellipsis fits", "camera", 3, "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Truncate(test.in, test.max); got != test.want {
				t.Errorf("Truncate(%q, %d) = %q, want %q: %s", test.in, test.max, got, test.want, test.reason)
			}
		})
	}
}
