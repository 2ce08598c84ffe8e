package details

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"akri.sh/akri/internal/regexsize"
)

// Pattern is the value of a condition: alternatives, separated by vertical bars, as
// shell globs. For fields that Akri reads as regular expressions, the value may also be
// one that matches the whole text.
type Pattern struct {
	globs      string
	expression *regexp.Regexp // nil if the value is only read as globs
	// size estimates the instructions of the expression.
	size int
}

// regexOnly are characters that a glob does not need. A value with one of them that is
// not a valid regular expression is a mistake.
const regexOnly = `(){}+^$\`

// regexSpecial are the characters that have a meaning in regular expressions. Without
// them, but for vertical bars, an expression matches what the globs match.
const regexSpecial = regexOnly + `.*?[]`

// newPattern parses a value, whose expression may have as many instructions as left. An
// error is that of the regular expression.
func newPattern(value string, regex bool, left int) (Pattern, error) {
	p := Pattern{globs: value}
	if !regex || !strings.ContainsAny(value, regexSpecial) {
		return p, nil
	}
	// The value is parsed alone first: the groups of one such as "a)|(b" must not reach
	// outside.
	parsed, err := syntax.Parse(value, syntax.Perl)
	if err == nil {
		if p.size = regexsize.Of(parsed, left); p.size > left {
			return p, errTooLarge
		}
		p.expression, err = regexp.Compile(`(?s)\A(?:` + value + `)\z`) // (?s) because attributes may have several lines
	}
	if err != nil && strings.ContainsAny(value, regexOnly) && !startsLikeGlob(err) {
		return p, err
	}
	return p, nil
}

// errTooLarge means that the regular expressions of a Configuration would take too much
// memory and time.
var errTooLarge = fmt.Errorf("the regular expressions have more than %d instructions when they are compiled", maxInstructions)

// startsLikeGlob reports whether a value is not a regular expression because there is a
// star where only a glob can have one, as in "*(TM)*".
func startsLikeGlob(err error) bool {
	mistake, ok := errors.AsType[*syntax.Error](err)
	return ok && mistake.Code == syntax.ErrMissingRepeatArgument
}

// Matches reports whether the pattern matches all of a value.
func (p Pattern) Matches(value string) bool {
	for glob := range strings.SplitSeq(p.globs, "|") {
		if globMatch(glob, value) {
			return true
		}
	}
	return p.expression != nil && p.expression.MatchString(value)
}

// matchesEmpty reports whether one of the alternatives is the empty text.
func (p Pattern) matchesEmpty() bool {
	for glob := range strings.SplitSeq(p.globs, "|") {
		if glob == "" {
			return true
		}
	}
	return false
}
