package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine returns a text of another program as one line that is safe to print: line
// breaks and tabs become spaces, and other characters that are not printable, such as
// the escape sequences of terminals, are written as in a Go string.
func OneLine(s string) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var line strings.Builder
	for _, r := range s {
		switch {
		case r == '\n', r == '\r', r == '\t':
			line.WriteByte(' ')
		case unicode.IsPrint(r):
			line.WriteRune(r)
		default:
			line.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return line.String()
}
