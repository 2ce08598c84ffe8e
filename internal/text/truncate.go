package text

import (
	"strings"
	"unicode/utf8"
)

// ellipsis stands for the part of a text that Truncate removes.
const ellipsis = "…"

// Truncate returns s if it has at most maxBytes bytes. Otherwise it returns the
// longest prefix of s that ends between two characters and, with an ellipsis
// appended, has at most maxBytes bytes. Invalid UTF-8 is replaced, because the API
// server rejects it. A maxBytes too small for the ellipsis returns "".
func Truncate(s string, maxBytes int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= maxBytes {
		return s
	}
	end := maxBytes - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
