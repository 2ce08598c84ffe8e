// Package text shortens text for people to read.
package text

import (
	"strings"
	"unicode/utf8"
)

// ellipsis stands for the part of a text that Truncate removes.
const ellipsis = "…"

// Truncate returns s if it has at most max bytes. Otherwise it returns the
// longest prefix of s that ends between two characters and, with an ellipsis
// appended, has at most max bytes. Invalid UTF-8 is replaced, because the API
// server rejects it. A max that is too small for the ellipsis returns "".
func Truncate(s string, max int) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= max {
		return s
	}
	end := max - len(ellipsis)
	if end < 0 {
		return ""
	}
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
