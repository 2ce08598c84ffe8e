package cli

import (
	"bytes"
	"io"
	"os"
	"unicode"

	"golang.org/x/term"
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

// Raw returns the writer to which a writer of [Printable] writes.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(printable); ok {
		return p.to
	}
	return w
}

// Exact returns the writer to which a writer of [Printable] writes if that is no terminal: what
// people write to files, and apply later, keeps all its characters.
func Exact(w io.Writer) io.Writer {
	if terminal(w) != nil {
		return w
	}
	return Raw(w)
}

// Clear clears the terminal to which a writer of [Printable] writes. It returns false if
// there is none.
func Clear(w io.Writer) bool {
	file := terminal(w)
	if file == nil {
		return false
	}
	_, err := file.WriteString("\x1b[H\x1b[2J")
	return err == nil
}

// terminal returns the terminal to which a writer writes, or nil.
func terminal(w io.Writer) *os.File {
	if file, ok := Raw(w).(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
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
