package details

import (
	"strings"
	"unicode/utf8"
)

// globMatch reports whether a pattern as in fnmatch(3), without flags, matches all of a
// value: * and ? also match slashes, [a-z] and [!a-z] match one character, [[:digit:]] is
// a class of ASCII characters, and a backslash quotes the next character. A bracket that
// is never closed stands for itself.
func globMatch(pattern, value string) bool {
	// After a mismatch, only the last star has to match more: an earlier one could not
	// reach further.
	restPattern, restValue, starred := "", "", false
	for {
		if strings.HasPrefix(pattern, "*") {
			pattern = pattern[1:]
			restPattern, restValue, starred = pattern, value, true
			continue
		}
		if value == "" && pattern == "" {
			return true
		}
		if value != "" && pattern != "" {
			if patternWidth, valueWidth, ok := matchOne(pattern, value); ok {
				pattern, value = pattern[patternWidth:], value[valueWidth:]
				continue
			}
		}
		if !starred || restValue == "" {
			return false
		}
		_, width := utf8.DecodeRuneInString(restValue)
		restValue = restValue[width:]
		pattern, value = restPattern, restValue
	}
}

// matchOne matches the first element of a pattern, which is not a star, with the first
// character of a value. It returns the bytes of both.
func matchOne(pattern, value string) (patternWidth, valueWidth int, ok bool) {
	got, valueWidth := utf8.DecodeRuneInString(value)
	switch pattern[0] {
	case '?':
		return 1, valueWidth, true
	case '[':
		if width, found, closed := matchBracket(pattern, got); closed {
			return width, valueWidth, found
		}
	case '\\':
		if len(pattern) > 1 {
			want, width := utf8.DecodeRuneInString(pattern[1:])
			return 1 + width, valueWidth, want == got
		}
	}
	want, width := utf8.DecodeRuneInString(pattern)
	return width, valueWidth, want == got
}

// matchBracket matches a bracket expression at the start of a pattern. closed is false if
// it never ends.
func matchBracket(pattern string, got rune) (width int, found, closed bool) {
	rest := pattern[1:]
	negated := strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "^")
	if negated {
		rest = rest[1:]
	}
	for first := true; rest != ""; first = false {
		if rest[0] == ']' && !first {
			return len(pattern) - len(rest) + 1, found != negated, true
		}
		if name, after, ok := cutClass(rest); ok {
			found = found || inClass(name, got)
			rest = after
			continue
		}
		low, after := cutCharacter(rest)
		high := low
		if strings.HasPrefix(after, "-") && len(after) > 1 && after[1] != ']' {
			high, after = cutCharacter(after[1:])
		}
		found = found || low <= got && got <= high
		rest = after
	}
	return 0, false, false
}

// cutCharacter returns the first character of a bracket expression, which a backslash may
// quote.
func cutCharacter(text string) (character rune, rest string) {
	if text[0] == '\\' && len(text) > 1 {
		text = text[1:]
	}
	character, width := utf8.DecodeRuneInString(text)
	return character, text[width:]
}

// cutClass returns the name in a class such as [:digit:].
func cutClass(text string) (name, rest string, ok bool) {
	inner, ok := strings.CutPrefix(text, "[:")
	if !ok {
		return "", text, false
	}
	name, rest, ok = strings.Cut(inner, ":]")
	return name, rest, ok
}

// inClass reports whether an ASCII character is in a class of fnmatch.
func inClass(name string, c rune) bool {
	upper, lower, digit := c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9'
	graphic := c > ' ' && c < 0x7f
	switch name {
	case "alnum":
		return upper || lower || digit
	case "alpha":
		return upper || lower
	case "blank":
		return c == ' ' || c == '\t'
	case "cntrl":
		return c < ' ' || c == 0x7f
	case "digit":
		return digit
	case "graph":
		return graphic
	case "lower":
		return lower
	case "print":
		return graphic || c == ' '
	case "punct":
		return graphic && !upper && !lower && !digit
	case "space":
		return c == ' ' || c >= '\t' && c <= '\r'
	case "upper":
		return upper
	case "xdigit":
		return digit || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return false
}
