package text

import "testing"

func TestOneLine(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"a sentence":        {"der Gerät's \"name\" – größer als 5%", "der Gerät's \"name\" – größer als 5%"},
		"lines":             {"one\r\ntwo\tthree\n", "one  two three "},
		"a forged log line": {"x\nlevel=INFO msg=all-is-well", "x level=INFO msg=all-is-well"},
		"clears the screen": {"\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\a`},
		"C1 control":        {"\u009b31m", `\u009b31m`},
		"reversed text":     {"a\u202eb", `a\u202eb`},
		"invalid UTF-8":     {"a\xff", "a\uFFFD"},
	} {
		if got := OneLine(test.in); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
