package cli

import (
	"bytes"
	"io"
	"unicode"
)

// Printable returns a writer that replaces control characters, apart from line breaks
// and tabs, by a visible form such as ^[, and characters that format the text around
// them. What the commands print comes from the cluster, where others choose it: an
// escape sequence could hide lines from the reader, or write others, and a change of
// direction could make a line read as another one.
func Printable(to io.Writer) io.Writer { return printable{to} }

type printable struct{ to io.Writer }

func (p printable) Write(text []byte) (int, error) {
	safe := text
	if bytes.ContainsFunc(text, isControl) {
		var replaced bytes.Buffer
		for _, r := range string(text) {
			switch {
			case !isControl(r):
				replaced.WriteRune(r)
			case r < 0x80:
				replaced.Write([]byte{'^', byte(r) ^ 0x40})
			default:
				replaced.WriteRune('\uFFFD') // some terminals obey it
			}
		}
		safe = replaced.Bytes()
	}
	if _, err := p.to.Write(safe); err != nil {
		return 0, err
	}
	return len(text), nil
}

// isControl reports whether a terminal may act on a character.
func isControl(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u200c', '\u200d': // languages need them to keep letters apart and to join them
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
