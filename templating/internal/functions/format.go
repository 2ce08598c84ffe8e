package functions

import (
	"strconv"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// Text formats a value for longer text: lists as a,b and LABEL_SELECTOR as
// k=v,k=v. Other maps have no such form.
func Text(b *budget.Budget, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return formatFloat(v), nil
	case nil:
		return "", fault.Hintf(`provide a default: {{ … | default "..." }}`, "the expression yields nothing")
	case []any:
		return join(b, v, ",")
	case value.Selector:
		var pairs []any
		for _, key := range value.Keys(v) {
			label, _ := v[key].(string)
			pairs = append(pairs, key+"="+label)
		}
		return join(b, pairs, ",")
	}
	return "", fault.Hintf("make it the whole value, choose one key of it, or use toJson", "a map cannot be part of a longer string")
}

// join formats the elements of a list with separators between them.
func join(b *budget.Budget, list []any, separator string) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	size := len(separator) * (len(list) - 1)
	for _, element := range list {
		if element == nil || !value.IsScalar(element) {
			return "", fault.Hintf("iterate over the list with range, or use toJson",
				"a list that contains %s cannot become a string", value.KindName(element))
		}
		if s, isText := element.(string); isText {
			size += len(s)
		} else {
			size += 24
		}
	}
	if err := b.Grow(size); err != nil {
		return "", err
	}
	if err := b.Step(int64(len(list))); err != nil {
		return "", err
	}
	var joined strings.Builder
	joined.Grow(size)
	for i, element := range list {
		if i > 0 {
			joined.WriteString(separator)
		}
		formatted, _ := Text(b, element) // which cannot fail for a scalar
		joined.WriteString(formatted)
	}
	return joined.String(), nil
}

// formatFloat formats a number in plain digits, except where JSON uses an
// exponent.
func formatFloat(f float64) string {
	format := byte('f')
	if size := max(f, -f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'g'
	}
	return strconv.FormatFloat(f, format, -1, 64)
}
