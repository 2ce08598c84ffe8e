package webhook

import (
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/templating"
)

// expression returns the inside of a text that is exactly one expression.
func expression(text string) (string, bool) {
	match := wholeExpression.FindStringSubmatch(text)
	if match == nil || strings.Contains(match[1], "{{") || strings.Contains(match[1], "}}") {
		return "", false
	}
	return match[1], true
}

var wholeExpression = regexp.MustCompile(`^\s*\{\{-?\s*(.*?)\s*-?\}\}\s*$`)

// hasExpression reports whether a text or key in a template has an expression.
func hasExpression(value any) bool {
	return anyText(value, func(text string) bool { return strings.Contains(text, "{{") })
}

// readsProperties reports whether a text or key in a template has an expression that
// may read properties of devices.
func readsProperties(value any) bool { return anyText(value, templating.ReadsDevice) }

// anyText reports whether one of the texts and keys in a value satisfies a
// condition.
func anyText(value any, satisfies func(string) bool) bool {
	switch value := value.(type) {
	case string:
		return satisfies(value)
	case []any:
		return slices.ContainsFunc(value, func(element any) bool { return anyText(element, satisfies) })
	case map[string]any:
		for key, element := range value {
			if satisfies(key) || anyText(element, satisfies) {
				return true
			}
		}
	}
	return false
}
