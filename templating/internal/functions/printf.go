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
	format, values := args[0].(string), args[1:]
	if err := b.Grow(len(format)); err != nil {
		return nil, err
	}
	var out strings.Builder
	for percent := strings.IndexByte(format, '%'); percent >= 0; percent = strings.IndexByte(format, '%') {
		out.WriteString(format[:percent])
		verb, err := cutVerb(b, format[percent:])
		if err != nil {
			return nil, err
		}
		format = format[percent+len(verb):]
		formatted := "%"
		if verb != "%%" {
			if len(values) == 0 {
				return nil, fault.Hintf("give a value for each % of the format", "printf has fewer values than its format needs")
			}
			if formatted, err = formatVerb(b, verb, values[0]); err != nil {
				return nil, err
			}
			values = values[1:]
		}
		if out.Len()+len(formatted) > budget.MaxObjectBytes {
			return nil, b.TooLarge()
		}
		if err := b.Grow(2 * len(formatted)); err != nil { // the builder doubles
			return nil, err
		}
		out.WriteString(formatted)
	}
	if len(values) > 0 {
		return nil, fault.Hintf("write a % verb such as %s for each value", "printf has more values than its format needs")
	}
	return out.String() + format, nil
}

// cutVerb returns the verb at the beginning of format, with its flags, width and precision,
// and pays for these.
func cutVerb(b *budget.Budget, format string) (string, error) {
	if strings.HasPrefix(format, "%%") {
		return "%%", nil
	}
	width, number := 0, 0
	for end := 1; end < len(format); end++ {
		switch c := format[end]; {
		case strings.IndexByte("+-# .", c) >= 0:
			width, number = width+number, 0
		case '0' <= c && c <= '9':
			if number = number*10 + int(c-'0'); number > maxWidth {
				return "", fmt.Errorf("widths of printf are limited to %d", maxWidth)
			}
		case strings.IndexByte("sdvqtfgexXobc", c) >= 0:
			cost := 4 * int64(width+number)
			return format[:end+1], b.Pay(cost, cost)
		default:
			return "", fault.Hintf("verbs are %s %d %v %q %t %f %g %e %x %X %o %b %c, a percent sign is %%",
				"printf does not know the verb %s", fault.Quote(strings.ToValidUTF8(format[:end+1], ""), 20))
		}
	}
	return "", fault.Hintf("write %% for a percent sign", "the format of printf ends in the middle of a verb")
}

// formatVerb formats one value with one verb.
func formatVerb(b *budget.Budget, verb string, v any) (string, error) {
	letter := verb[len(verb)-1:]
	also, plainly := "", "s" // what the value's type allows besides %s, %v and %q, and what the first two become
	switch n := v.(type) {
	case string:
		also = "xX"
	case bool:
		also, plainly = "t", "t"
	case int64:
		also, plainly = "doxXbcfge", "d"
		if strings.Contains("fge", letter) {
			v = float64(n)
		}
	case float64:
		also = "fge"
	}
	switch {
	case letter == "q" || plainly == "s" && (letter == "s" || letter == "v"):
		formatted, err := Text(b, v)
		if err != nil {
			return "", err
		}
		letter, v = strings.Replace(letter, "v", "s", 1), formatted
	case letter == "s" || letter == "v":
		letter = plainly
	case !strings.Contains(also, letter):
		const hint = "%d and %x take whole numbers, %f numbers, %t true or false, %s and %v anything; " +
			"int and float64 turn strings into numbers"
		return "", fault.Hintf(hint, "printf: %%%s cannot format %s", letter, value.KindName(v))
	}
	if s, ok := v.(string); ok {
		if err := b.Pay(int64(len(s))/2, 8*int64(len(s))+2); err != nil { // escapes of %q
			return "", err
		}
	}
	return fmt.Sprintf(verb[:len(verb)-1]+letter, v), nil
}
