package details

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/internal/regexsize"
)

// Pattern is the value of a condition: alternatives, separated by vertical bars, as
// shell globs. For fields that Akri reads as regular expressions, the value may also be
// one that matches the whole text.
type Pattern struct {
	// texts are the alternatives that stand for themselves.
	texts []string
	// expression matches the others, and what the value matches as a regular expression;
	// nil without any.
	expression *regexp.Regexp
	// size estimates the instructions of the expression.
	size int
}

// regexOnly are characters that a glob does not need. A value with one of them that is
// not a valid regular expression is a mistake.
const regexOnly = `(){}+^$\`

// regexSpecial are the characters that have a meaning in regular expressions. Without
// them, but for vertical bars, an expression matches what the globs match.
const regexSpecial = regexOnly + `.*?[]`

// expressionSize is what a regular expression takes in addition to its instructions, as if
// it were instructions.
const expressionSize = 20

// newPattern parses a value, whose expression may have as many instructions as left. An
// error is that of the regular expression.
func newPattern(value string, regex bool, left int) (Pattern, error) {
	var p Pattern
	var expressions []string
	for glob := range strings.SplitSeq(value, "|") {
		if strings.ContainsAny(glob, `*?[\`) {
			expressions = append(expressions, globExpression(glob))
		} else {
			p.texts = append(p.texts, glob)
		}
	}
	if regex && strings.ContainsAny(value, regexSpecial) {
		// The value is parsed alone first: the groups of one such as "a)|(b" must not reach
		// outside.
		if _, err := syntax.Parse(value, syntax.Perl); err == nil {
			expressions = append(expressions, value)
		} else if strings.ContainsAny(value, regexOnly) && !startsLikeGlob(err) {
			return p, err
		}
	}
	if len(expressions) == 0 {
		return p, nil
	}
	whole := `(?s)\A(?:` + strings.Join(expressions, "|") + `)\z` // (?s) because attributes may have several lines
	parsed, err := syntax.Parse(whole, syntax.Perl)
	if err != nil {
		return p, err
	}
	if p.size = expressionSize + regexsize.Of(parsed, left); p.size > left {
		return p, errTooLarge
	}
	p.expression, err = regexp.Compile(whole)
	return p, err
}

// errTooLarge means that the patterns of a Configuration would take too much memory and
// time.
var errTooLarge = fmt.Errorf("globs and regular expressions have more than %d instructions when they are compiled", maxInstructions)

// startsLikeGlob reports whether a value is not a regular expression because there is a
// star where only a glob can have one, as in "*(TM)*".
func startsLikeGlob(err error) bool {
	mistake, ok := errors.AsType[*syntax.Error](err)
	return ok && mistake.Code == syntax.ErrMissingRepeatArgument
}

// Matches reports whether the pattern matches all of a value.
func (p Pattern) Matches(value string) bool {
	return slices.Contains(p.texts, value) || p.expression != nil && p.expression.MatchString(value)
}

// matchesEmpty reports whether one of the alternatives is the empty text.
func (p Pattern) matchesEmpty() bool { return slices.Contains(p.texts, "") }

// set is a bracket expression at the start of a glob, and the rest. Its first character may
// be a bracket, and classes such as [:digit:] have brackets of their own.
var set = regexp.MustCompile(`(?s)^\[([!^]?)(\]?(?:\[:\w*:\]|\\.|[^\]\\])+|\])\](.*)$`)

// quoted is a backslash with what it quotes.
var quoted = regexp.MustCompile(`(?s)\\.`)

// globExpression returns the regular expression for a glob as in fnmatch(3), without
// flags: * and ? also match slashes, [a-z] and [!a-z] match one character, [[:digit:]] is
// a class of ASCII characters, and a backslash quotes the next character. A bracket that
// is never closed stands for itself, and so do those after it.
func globExpression(glob string) string {
	var expression strings.Builder
	for closed := true; glob != ""; {
		var parts []string
		if closed && glob[0] == '[' {
			parts = set.FindStringSubmatch(glob)
			closed = parts != nil
		}
		switch {
		case parts != nil:
			expression.WriteString(setExpression(parts[1] != "", parts[2]))
			glob = parts[3]
		case glob[0] == '*':
			expression.WriteString(".*")
			glob = glob[1:]
		case glob[0] == '?':
			expression.WriteString(".")
			glob = glob[1:]
		default:
			if glob[0] == '\\' && len(glob) > 1 {
				glob = glob[1:]
			}
			_, width := utf8.DecodeRuneInString(glob)
			expression.WriteString(regexp.QuoteMeta(glob[:width]))
			glob = glob[width:]
		}
	}
	return expression.String()
}

// setExpression returns the regular expression for a set of characters. One with an
// unknown class or with a range in the wrong order has no characters.
func setExpression(negated bool, characters string) string {
	if characters[0] == ']' {
		characters = `\` + characters
	}
	characters = quoted.ReplaceAllStringFunc(characters, func(pair string) string {
		character, _ := utf8.DecodeRuneInString(pair[1:])
		return fmt.Sprintf(`\x{%X}`, character)
	})
	if _, err := syntax.Parse("["+characters+"]", syntax.Perl); err != nil {
		characters = `\x{D800}` // which no text has
	}
	if negated {
		return "[^" + characters + "]"
	}
	return "[" + characters + "]"
}
