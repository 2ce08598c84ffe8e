package cli

import (
	"bytes"
	"fmt"
	"testing"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"a\tbü\n":                 "a\tbü\n",
		"\x1b[2J\x1b]0;title\x07": "^[[2J^[]0;title^G",
		"ready\rfailed\x7f":       "ready^Mfailed^?",
		"\u009b31m":               "\uFFFD31m",
		// Terminals show the rest of the line in another order, or as another line.
		"ready \u202egnitiaw\u202c": "ready \uFFFDgnitiaw\uFFFD",
		"a\u2066b\u2069c\u200f":     "a\uFFFDb\uFFFDc\uFFFD",
		"a\u2028b\u2029c":           "a\uFFFDb\uFFFDc",
		// Two names that look the same.
		"cam\u200bera\u00ad\ufeff": "cam\uFFFDera\uFFFD\uFFFD",
		"cam\U000e0061":            "cam\uFFFD",
		// Languages need these two, which join letters or keep them apart.
		"می\u200cخواهم 👨\u200d👩": "می\u200cخواهم 👨\u200d👩",
	} {
		var out bytes.Buffer
		if n, err := fmt.Fprint(Printable(&out), in); err != nil || n != len(in) || out.String() != want {
			t.Errorf("%q: wrote %q (%d bytes, %v), want %q", in, out.String(), n, err, want)
		}
	}
}
