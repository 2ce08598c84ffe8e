package webhook

import (
	"regexp"
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
	return templating.AnyText(value, func(text string) bool { return strings.Contains(text, "{{") })
}
