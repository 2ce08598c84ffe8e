package templating

import (
	"fmt"
	"strings"
)

// maxWidth is the widest field and the highest precision of printf.
const maxWidth = 1024

// printf is fmt.Sprintf for the types and verbs that make sense here. Where
// Sprintf writes its complaint into the result, with the value in it, this fails.
func printf(m *machine, args []any) (any, error) {
	format, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	args = args[1:]
	if err := m.grows(len(format)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for format != "" {
		percent := strings.IndexByte(format, '%')
		if percent < 0 {
			percent = len(format)
		}
		b.WriteString(format[:percent])
		if format = format[percent:]; format == "" {
			break
		}
		if strings.HasPrefix(format, "%%") {
			b.WriteByte('%')
			format = format[2:]
			continue
		}
		verb, width, err := cutVerb(format)
		if err != nil {
			return nil, err
		}
		if err := m.budget.step(4 * int64(width)); err != nil {
			return nil, err
		}
		if err := m.budget.allocate(4 * int64(width)); err != nil {
			return nil, err
		}
		if format = format[len(verb):]; len(args) == 0 {
			return nil, hintf("give a value for each % of the format", "printf has fewer values than its format asks for")
		}
		written, err := formatVerb(m, verb, args[0])
		if err != nil {
			return nil, err
		}
		if b.Len()+len(written) > MaxObjectBytes {
			return nil, m.grows(MaxObjectBytes + 1)
		}
		if err := m.grows(2 * len(written)); err != nil { // the builder doubles
			return nil, err
		}
		b.WriteString(written)
		args = args[1:]
	}
	if len(args) > 0 {
		return nil, hintf("write a % verb such as %s for each value", "printf has more values than its format asks for")
	}
	return b.String(), nil
}

// cutVerb is the verb at the beginning of format, flags, width and precision
// included, and the sum of these two.
func cutVerb(format string) (verb string, width int, err error) {
	number, end := 0, 1
	for ; end < len(format); end++ {
		switch c := format[end]; {
		case strings.IndexByte("+-# .", c) >= 0:
			width, number = width+number, 0
		case '0' <= c && c <= '9':
			if number = number*10 + int(c-'0'); number > maxWidth {
				return "", 0, fmt.Errorf("widths of printf are limited to %d", maxWidth)
			}
		case strings.IndexByte("sdvqtfgexXobc", c) >= 0:
			return format[:end+1], width + number, nil
		default:
			return "", 0, hintf("verbs are %s %d %v %q %t %f %g %e %x %X %o %b %c, a percent sign is %%",
				"printf does not know the verb %s", quote(strings.ToValidUTF8(format[:end+1], ""), 20))
		}
	}
	return "", 0, hintf("write %% for a percent sign", "the format of printf ends in the middle of a verb")
}

// formatVerb writes one value as one verb asks.
func formatVerb(m *machine, verb string, value any) (string, error) {
	letter := verb[len(verb)-1]
	_, isText := value.(string)
	_, isInt := value.(int64)
	_, isFloat := value.(float64)
	_, isBool := value.(bool)
	fits := false
	switch letter {
	case 's', 'v':
		fits = true
		switch {
		case isInt:
			letter = 'd'
		case isBool:
			letter = 't'
		default:
			written, err := m.text(value)
			if err != nil {
				return "", err
			}
			letter, value = 's', written
		}
		verb = verb[:len(verb)-1] + string(rune(letter))
	case 'q':
		fits = true
		if !isText {
			written, err := m.text(value)
			if err != nil {
				return "", err
			}
			value = written
		}
	case 'x', 'X':
		fits = isText || isInt
	case 'd', 'o', 'b', 'c':
		fits = isInt
	case 't':
		fits = isBool
	case 'f', 'g', 'e':
		if n, is := value.(int64); is {
			value = float64(n)
		}
		fits = isInt || isFloat
	}
	if !fits {
		return "", hintf("%d and %x want whole numbers, %f numbers, %t true or false, %s and %v anything; int and float64 turn text into numbers",
			"printf: %%%c cannot write %s", letter, kindName(value))
	}
	if text, is := value.(string); is {
		if err := m.pays(8*len(text) + 2); err != nil { // escapes of %q
			return "", err
		}
	}
	return fmt.Sprintf(verb, value), nil
}
