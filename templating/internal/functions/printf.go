package functions

import (
	"fmt"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// maxWidth is the limit of widths and precisions in printf.
const maxWidth = 1024

// printf is fmt.Sprintf for the types and verbs that make sense here. It fails
// where Sprintf would write a complaint, with the value, into the result.
func printf(b *budget.Budget, args []any) (any, error) {
	format, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	args = args[1:]
	if err := b.Grow(len(format)); err != nil {
		return nil, err
	}
	var out strings.Builder
	for format != "" {
		percent := strings.IndexByte(format, '%')
		if percent < 0 {
			percent = len(format)
		}
		out.WriteString(format[:percent])
		if format = format[percent:]; format == "" {
			break
		}
		if strings.HasPrefix(format, "%%") {
			out.WriteByte('%')
			format = format[2:]
			continue
		}
		verb, width, err := cutVerb(format)
		if err != nil {
			return nil, err
		}
		if err := b.Step(4 * int64(width)); err != nil {
			return nil, err
		}
		if err := b.Allocate(4 * int64(width)); err != nil {
			return nil, err
		}
		if format = format[len(verb):]; len(args) == 0 {
			return nil, fault.Hintf("give a value for each % of the format", "printf has fewer values than its format needs")
		}
		formatted, err := formatVerb(b, verb, args[0])
		if err != nil {
			return nil, err
		}
		if out.Len()+len(formatted) > budget.MaxObjectBytes {
			return nil, b.TooLarge()
		}
		if err := b.Grow(2 * len(formatted)); err != nil { // the builder doubles
			return nil, err
		}
		out.WriteString(formatted)
		args = args[1:]
	}
	if len(args) > 0 {
		return nil, fault.Hintf("write a % verb such as %s for each value", "printf has more values than its format needs")
	}
	return out.String(), nil
}

// cutVerb returns the verb at the beginning of format, including flags, width and
// precision, and the sum of width and precision.
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
			return "", 0, fault.Hintf("verbs are %s %d %v %q %t %f %g %e %x %X %o %b %c, a percent sign is %%",
				"printf does not know the verb %s", fault.Quote(strings.ToValidUTF8(format[:end+1], ""), 20))
		}
	}
	return "", 0, fault.Hintf("write %% for a percent sign", "the format of printf ends in the middle of a verb")
}

// formatVerb formats one value with one verb.
func formatVerb(b *budget.Budget, verb string, v any) (string, error) {
	letter := verb[len(verb)-1]
	_, isText := v.(string)
	_, isInt := v.(int64)
	_, isFloat := v.(float64)
	_, isBool := v.(bool)
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
			formatted, err := Text(b, v)
			if err != nil {
				return "", err
			}
			letter, v = 's', formatted
		}
		verb = verb[:len(verb)-1] + string(rune(letter))
	case 'q':
		fits = true
		if !isText {
			formatted, err := Text(b, v)
			if err != nil {
				return "", err
			}
			v = formatted
		}
	case 'x', 'X':
		fits = isText || isInt
	case 'd', 'o', 'b', 'c':
		fits = isInt
	case 't':
		fits = isBool
	case 'f', 'g', 'e':
		if isInt {
			v = float64(v.(int64))
		}
		fits = isInt || isFloat
	}
	if !fits {
		const hint = "%d and %x take whole numbers, %f numbers, %t true or false, %s and %v anything; " +
			"int and float64 turn strings into numbers"
		return "", fault.Hintf(hint, "printf: %%%c cannot format %s", letter, value.KindName(v))
	}
	if s, ok := v.(string); ok {
		if err := b.Charge(8*len(s) + 2); err != nil { // escapes of %q
			return "", err
		}
	}
	return fmt.Sprintf(verb, v), nil
}
