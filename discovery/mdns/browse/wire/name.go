package wire

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of RFC 1035 on names.
const (
	maxLabelBytes = 63
	maxNameBytes  = 255
)

// Name is a domain name without the dot at its end. Within a label, a dot and a
// backslash have a backslash before them, and bytes that are control characters or not
// UTF-8 are written as \DDD, in decimal. The empty Name is the root.
type Name string

// NewName returns the name with these labels, which are not escaped.
func NewName(labels ...string) (Name, error) {
	var text strings.Builder
	size := 1
	for i, label := range labels {
		if label == "" || len(label) > maxLabelBytes {
			return "", fmt.Errorf("a label of a domain name has %d bytes: want 1 to %d", len(label), maxLabelBytes)
		}
		if size += 1 + len(label); size > maxNameBytes {
			return "", fmt.Errorf("a domain name has more than %d bytes", maxNameBytes)
		}
		if i > 0 {
			text.WriteByte('.')
		}
		escape(&text, label)
	}
	return Name(text.String()), nil
}

// ParseName returns the name that a text stands for, in the form that Name has. The text
// may end with a dot.
func ParseName(text string) (Name, error) {
	text = strings.TrimSuffix(text, ".")
	if text == "" {
		return "", nil
	}
	labels, ok := split(text)
	if !ok {
		return "", errors.New(`a domain name ends with a backslash, or has one before a number that is not 000 to 255`)
	}
	return NewName(labels...)
}

// Labels returns the labels, without escapes.
func (n Name) Labels() []string {
	if n == "" {
		return nil
	}
	labels, _ := split(string(n)) // cannot fail: every Name is valid
	return labels
}

// Key returns the name in lower case. DNS ignores the case of ASCII letters, so two names
// are the same if their keys are equal.
func (n Name) Key() string {
	for i := range len(n) {
		if c := n[i]; 'A' <= c && c <= 'Z' {
			return lower(string(n))
		}
	}
	return string(n)
}

// Parent returns the name without its first label.
func (n Name) Parent() Name {
	for i := 0; i < len(n); i++ {
		switch n[i] {
		case '\\':
			i++
		case '.':
			return n[i+1:]
		}
	}
	return ""
}

// First returns the first label, without escapes.
func (n Name) First() string {
	rest := n.Parent()
	if rest != "" {
		n = n[:len(n)-len(rest)-1]
	}
	if labels := n.Labels(); len(labels) > 0 {
		return labels[0]
	}
	return ""
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

// split returns the labels of a text with escapes.
func split(text string) (labels []string, ok bool) {
	var label []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '.':
			labels = append(labels, string(label))
			label = label[:0]
			continue
		case c != '\\':
		case i+1 == len(text):
			return nil, false
		case text[i+1] < '0' || text[i+1] > '9':
			i++
			c = text[i]
		default:
			value, valid := decimal(text[i+1:])
			if !valid {
				return nil, false
			}
			i, c = i+3, value
		}
		label = append(label, c)
	}
	return append(labels, string(label)), true
}

// decimal reads three digits.
func decimal(text string) (value byte, ok bool) {
	if len(text) < 3 {
		return 0, false
	}
	sum := 0
	for i := range 3 {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		sum = 10*sum + int(text[i]-'0')
	}
	return byte(sum), sum < 256
}

// lower turns ASCII letters into lower case, and leaves all other bytes as they are.
func lower(text string) string {
	data := []byte(text)
	for i, c := range data {
		if 'A' <= c && c <= 'Z' {
			data[i] = c + 'a' - 'A'
		}
	}
	return string(data)
}
