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

// class is one of fnmatch(3) at the start of a text.
var class = regexp.MustCompile(`^\[:(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit):\]`)

// globExpression returns the regular expression for a glob as in fnmatch(3), without
// flags: * and ? also match slashes, [a-z] and [!a-z] match one character, [[:digit:]] is
// a class of ASCII characters, and a backslash quotes the next character. A bracket that
// is never closed stands for itself.
func globExpression(glob string) string {
	var expression strings.Builder
	open := false // a bracket was never closed; those after it are not, unless they look like a class
	for glob != "" {
		character, rest := cutCharacter(glob)
		text := regexp.QuoteMeta(string(character))
		switch glob[0] {
		case '*':
			text = ".*"
		case '?':
			text = "."
		case '[':
			if _, isClass := cutClass(glob); open && !isClass {
				break
			}
			if set, after, closed := cutSet(rest); closed {
				text, rest = set, after
			} else {
				open = true
			}
		}
		expression.WriteString(text)
		glob = rest
	}
	return expression.String()
}

// cutSet returns the regular expression for a set of characters, which a bracket ends.
func cutSet(text string) (set, rest string, closed bool) {
	var expression strings.Builder
	expression.WriteString("[")
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^") {
		expression.WriteString("^")
		text = text[1:]
	}
	expression.WriteString(`\x{D800}`) // no text has it, but a regular expression cannot have an empty set
	for first := true; text != ""; first = false {
		if text[0] == ']' && !first {
			return expression.String() + "]", text[1:], true
		}
		if after, ok := cutClass(text); ok {
			expression.WriteString(class.FindString(text)) // nothing is in an unknown class
			text = after
			continue
		}
		low, after := cutCharacter(text)
		high := low
		if strings.HasPrefix(after, "-") && len(after) > 1 && after[1] != ']' {
			high, after = cutCharacter(after[1:])
		}
		if low <= high {
			fmt.Fprintf(&expression, `\x{%X}-\x{%X}`, low, high)
		}
		text = after
	}
	return "", "", false
}

// cutClass returns what follows a class such as [:digit:].
func cutClass(text string) (rest string, ok bool) {
	if !strings.HasPrefix(text, "[:") {
		return text, false
	}
	_, rest, ok = strings.Cut(text[2:], ":]")
	return rest, ok
}

// cutCharacter returns the first character of a glob, which a backslash may quote.
func cutCharacter(text string) (character rune, rest string) {
	if text[0] == '\\' && len(text) > 1 {
		text = text[1:]
	}
	character, width := utf8.DecodeRuneInString(text)
	return character, text[width:]
}
