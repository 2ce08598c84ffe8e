package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/miekg/dns"
)

// maxNameBytes is the size of the longest name in a message (RFC 1035).
const maxNameBytes = 255

// Name is a domain name without the dot at its end. Within a label, a dot and a
// backslash have a backslash before them, and bytes that are control characters or not
// UTF-8 are written as \DDD, in decimal. The empty Name is the root.
type Name string

// NewName returns the name with these labels, which are not escaped.
func NewName(labels ...string) Name {
	var text strings.Builder
	for i, label := range labels {
		if i > 0 {
			text.WriteByte('.')
		}
		escape(&text, label)
	}
	return Name(text.String())
}

// ParseName returns the name that a text stands for, in the form that Name has. The text
// may end with a dot.
func ParseName(text string) (Name, error) {
	full := dns.Fqdn(text)
	if _, err := dns.PackDomainName(full, make([]byte, maxNameBytes), 0, nil, false); err != nil {
		return "", fmt.Errorf("%q is not a domain name: want labels of 1 to 63 bytes, and 255 bytes at most", text)
	}
	return nameOf(full), nil
}

// nameOf returns the name for a text of package dns, which ends with a dot, and escapes more
// than Name does.
func nameOf(text string) Name {
	return NewName(Name(strings.TrimSuffix(text, ".")).Labels()...)
}

// text returns the text of package dns for a name.
func (n Name) text() string { return string(n) + "." }

// Labels returns the labels, without escapes.
func (n Name) Labels() []string {
	labels := dns.SplitDomainName(string(n))
	for i, label := range labels {
		labels[i] = unescape(label)
	}
	return labels
}

// Key returns the name in lower case. DNS ignores the case of ASCII letters, so two names
// are the same if their keys are equal.
func (n Name) Key() string { return lower(string(n)) }

// Parent returns the name without its first label.
func (n Name) Parent() Name {
	next, last := dns.NextLabel(string(n), 0)
	if last {
		return ""
	}
	return n[next:]
}

// First returns the first label, without escapes.
func (n Name) First() string {
	if next, last := dns.NextLabel(string(n), 0); !last {
		n = n[:next-1]
	}
	return unescape(string(n))
}

// escape appends a label in the form that it has in a Name.
func escape(text *strings.Builder, label string) {
	for len(label) > 0 {
		r, size := utf8.DecodeRuneInString(label)
		switch c := label[0]; {
		case c == '.' || c == '\\':
			text.WriteByte('\\')
			text.WriteByte(c)
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			fmt.Fprintf(text, `\%03d`, c)
		default:
			text.WriteString(label[:size])
		}
		label = label[size:]
	}
}

// unescape returns the bytes that a label with escapes stands for.
func unescape(label string) string {
	if !strings.Contains(label, `\`) {
		return label
	}
	var text []byte
	for i := 0; i < len(label); i++ {
		c := label[i]
		if c == '\\' && i+1 < len(label) {
			i++
			c = label[i]
			if i+3 <= len(label) {
				if value, err := strconv.ParseUint(label[i:i+3], 10, 8); err == nil {
					c, i = byte(value), i+2
				}
			}
		}
		text = append(text, c)
	}
	return string(text)
}

// lower turns ASCII letters into lower case, and leaves all others as they are.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}
