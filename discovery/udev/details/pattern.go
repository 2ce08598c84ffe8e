package details

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Pattern is the value of a condition: alternatives, separated by vertical bars, as
// shell globs. For fields that Akri reads as regular expressions, the value may also be
// one that matches the whole text.
type Pattern struct {
	alternatives []string
	expression   *regexp.Regexp // nil if the value is only read as globs
}

// regexOnly are characters that a glob does not need. A value with one of them that is
// not a valid regular expression is a mistake.
const regexOnly = `(){}+^$\`

// newPattern parses a value. An error is that of the regular expression.
func newPattern(value string, regex bool) (Pattern, error) {
	p := Pattern{alternatives: strings.Split(value, "|")}
	if !regex {
		return p, nil
	}
	// (?s) because attributes may have several lines.
	expression, err := regexp.Compile(`(?s)\A(?:` + value + `)\z`)
	if err == nil {
		// The groups of a value such as "a)|(b" must not reach outside.
		_, err = regexp.Compile(value)
	}
	switch {
	case err == nil:
		p.expression = expression
	case strings.ContainsAny(value, regexOnly) && !startsLikeGlob(err):
		return p, err
	}
	return p, nil
}

// startsLikeGlob reports whether a value is not a regular expression because there is a
// star where only a glob can have one, as in "*(TM)*".
func startsLikeGlob(err error) bool {
	mistake, ok := errors.AsType[*syntax.Error](err)
	return ok && mistake.Code == syntax.ErrMissingRepeatArgument
}

// Matches reports whether the pattern matches all of a value.
func (p Pattern) Matches(value string) bool {
	return slices.ContainsFunc(p.alternatives, func(glob string) bool { return globMatch(glob, value) }) ||
		p.expression != nil && p.expression.MatchString(value)
}

// matchesEmpty reports whether one of the alternatives is the empty text.
func (p Pattern) matchesEmpty() bool { return slices.Contains(p.alternatives, "") }
