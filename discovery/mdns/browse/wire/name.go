package wire

import (
	"fmt"
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
func (n Name) Labels() (labels []string) {
	var packed [maxNameBytes]byte
	_, _ = dns.PackDomainName(n.text(), packed[:], 0, nil, false) // what it has packed is what is valid
	for rest := packed[:]; len(rest) > 0 && rest[0] > 0; rest = rest[1+rest[0]:] {
		labels = append(labels, string(rest[1:1+rest[0]]))
	}
	return labels
}

// Key returns the name in lower case. DNS ignores the case of ASCII letters, so two names
// are the same if their keys are equal.
func (n Name) Key() string { return strings.TrimSuffix(dns.CanonicalName(n.text()), ".") }

// Parent returns the name without its first label.
func (n Name) Parent() Name {
	next, last := dns.NextLabel(string(n), 0)
	if last {
		return ""
	}
	return n[next:]
}

// First returns the first label, without escapes; "" of the root.
func (n Name) First() string { return strings.Join(n.Labels()[:min(1, len(n))], "") }

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
