package fault

import (
	"strconv"
	"strings"

	"akri.sh/akri/internal/text"
)

// The maximum number of bytes that a message quotes.
const (
	MaxQuoted = 120 // of an author's text
	MaxName   = 63  // of a name
)

// Quote returns s in double quotes, truncated to limit bytes and with control
// characters escaped. Quotation marks stay as they are, because expressions are
// full of them.
func Quote(s string, limit int) string {
	if len(s) > limit {
		s = text.Truncate(s, limit)
	}
	quoted := strconv.Quote(s)
	return `"` + strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + `"`
}

// IsPlain reports whether a key needs no quotes in a message or a path.
func IsPlain(key string) bool {
	if key == "" || len(key) > MaxQuoted {
		return false
	}
	for i := range len(key) {
		c := key[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}
