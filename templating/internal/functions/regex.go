package functions

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"akri.sh/akri/internal/regexsize"
	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
)

// Limits of regular expressions. Matching is linear in the text, but also in the
// size of the compiled expression, and a few characters can compile to a large one.
const (
	maxPattern      = 512
	maxInstructions = 1000
)

var regexFunctions = []Function{
	{Name: "regexMatch", Group: "Regular expressions", What: "whether the string matches", min: 2, max: 2,
		Example: `regexMatch "^rtsp://" INSTANCE_PROPERTIES.URL`, Result: `true`,
		run: matching(func(_ *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			return re.MatchString(args[1].(string)), nil
		})},
	{Name: "regexFind", Group: "Regular expressions", What: `the first match, or ""`, min: 2, max: 2,
		Example: `regexFind "[0-9]+" "cam-42"`, Result: `"42"`,
		run: matching(func(_ *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			return re.FindString(args[1].(string)), nil
		})},
	{Name: "regexFindAll", Group: "Regular expressions", What: "a list of the first N matches, or of all for -1", min: 3, max: 3,
		Example: `regexFindAll "[0-9]" "a1b2" -1`, Result: `["1","2"]`,
		run: matching(func(b *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			n, err := smallArg(args, 2)
			if err != nil {
				return nil, err
			}
			return findAll(b, re, args[1].(string), n)
		})},
	{Name: "regexReplaceAll", Group: "Regular expressions",
		What: "the second argument with each match replaced by the third, where ${1} is the first group", min: 3, max: 3,
		Example: `regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"`, Result: `"-W-xxW-"`,
		run: matching(func(b *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			return replaceAll(b, re, args, true)
		})},
	{Name: "regexReplaceAllLiteral", Group: "Regular expressions",
		What: "as regexReplaceAll, with a literal third argument", min: 3, max: 3,
		Example: `regexReplaceAllLiteral "[^a-z]" "a.b" "$"`, Result: `"a$b"`,
		run: matching(func(b *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			return replaceAll(b, re, args, false)
		})},
	{Name: "regexSplit", Group: "Regular expressions", What: "a list of the parts between matches, at most N; all for -1", min: 3, max: 3,
		Example: `regexSplit "[,;]" "a,b;c" -1`, Result: `["a","b","c"]`,
		run: matching(func(b *budget.Budget, re *regexp.Regexp, args []any) (any, error) {
			n, err := smallArg(args, 2)
			if err != nil {
				return nil, err
			}
			if err := payForMatches(b, re, args[1].(string), n); err != nil {
				return nil, err
			}
			return anyList(re.Split(args[1].(string), n)), nil
		})},
	{Name: "regexQuoteMeta", Group: "Regular expressions", What: "an expression that matches the string itself", min: 1, max: 1,
		Example: `regexQuoteMeta "1.5"`, Result: `"1\\.5"`,
		run: text1(regexp.QuoteMeta)},
}

// matching returns a function that compiles the expression args[0], pays for
// matching the text args[1], and calls run.
func matching(run func(b *budget.Budget, re *regexp.Regexp, args []any) (any, error)) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		pattern, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		s, err := textArg(args, 1)
		if err != nil {
			return nil, err
		}
		re, size, err := compilePattern(b, pattern)
		if err != nil {
			return nil, err
		}
		if err := b.Step(int64(len(s)) * (8 + int64(size)) / 8); err != nil {
			return nil, err
		}
		return run(b, re, args)
	}
}

// compilePattern compiles an expression after it has checked that the result will
// be small. It returns the estimated size, too.
func compilePattern(b *budget.Budget, pattern string) (*regexp.Regexp, int, error) {
	if len(pattern) > maxPattern {
		return nil, 0, b.Exhaustf("", "regular expressions are limited to %d bytes", maxPattern)
	}
	// Classes such as \pL have hundreds of ranges, and more if case is ignored.
	classes := strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`) + 8*strings.Count(pattern, "(?")
	if err := b.Step(int64(8*len(pattern) + 256*classes)); err != nil {
		return nil, 0, err
	}
	if err := b.Allocate(int64(256*len(pattern) + 16<<10*classes)); err != nil {
		return nil, 0, err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := "it cannot be parsed"
		e := &syntax.Error{}
		if errors.As(err, &e) {
			reason = string(e.Code)
		}
		return nil, 0, fault.Hintf("see https://pkg.go.dev/regexp/syntax; in a quoted string write \\\\ for \\, or use back quotes",
			"this is not a regular expression: %s", reason)
	}
	size := regexsize.Of(parsed, maxInstructions)
	if size > maxInstructions {
		return nil, 0, b.Exhaustf("", "compiled regular expressions are limited to %d instructions", maxInstructions)
	}
	if err := b.Step(int64(4 * size)); err != nil {
		return nil, 0, err
	}
	if err := b.Allocate(int64(256 * size)); err != nil {
		return nil, 0, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, errors.New("this is not a regular expression")
	}
	return re, size, nil
}

// payForMatches pays for the largest possible number of matches.
func payForMatches(b *budget.Budget, re *regexp.Regexp, s string, n int) error {
	matches := len(s) + 1
	if n >= 0 {
		matches = min(matches, n)
	}
	return b.Allocate(int64(matches) * int64(160+24*re.NumSubexp()))
}

func findAll(b *budget.Budget, re *regexp.Regexp, s string, n int) (any, error) {
	if err := payForMatches(b, re, s, n); err != nil {
		return nil, err
	}
	return anyList(re.FindAllString(s, n)), nil
}

func anyList(texts []string) []any {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
	}
	return list
}

// replaceAll is Regexp.ReplaceAllString, or ReplaceAllLiteralString without expand, that
// pays for each match before the result grows: references such as $1 can multiply the
// length of the string.
func replaceAll(b *budget.Budget, re *regexp.Regexp, args []any, expand bool) (any, error) {
	s := args[1].(string)
	with, err := textArg(args, 2)
	if err != nil {
		return nil, err
	}
	if err := payForMatches(b, re, s, -1); err != nil {
		return nil, err
	}
	references := 0
	if expand {
		references = strings.Count(with, "$")
	}
	var out []byte
	end := 0
	for _, match := range re.FindAllStringSubmatchIndex(s, -1) {
		if err := b.Grow(len(out) + match[0] - end + len(with) + references*(match[1]-match[0])); err != nil {
			return nil, err
		}
		out = append(out, s[end:match[0]]...)
		if expand {
			out = re.ExpandString(out, with, s, match)
		} else {
			out = append(out, with...)
		}
		end = match[1]
	}
	if err := b.Grow(len(out) + len(s) - end); err != nil {
		return nil, err
	}
	return string(append(out, s[end:]...)), b.Allocate(3 * int64(len(out)))
}
