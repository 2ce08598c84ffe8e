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
	} {
		var out bytes.Buffer
		if n, err := fmt.Fprint(Printable(&out), in); err != nil || n != len(in) || out.String() != want {
			t.Errorf("%q: wrote %q (%d bytes, %v), want %q", in, out.String(), n, err, want)
		}
	}
}
