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
	{Name: "regexMatch", What: "whether the string matches", takes: "string string",
		Example: `regexMatch "^rtsp://" INSTANCE_PROPERTIES.URL`, Result: `true`, bound: payForMatch},
	{Name: "regexFind", What: `the first match, or ""`, takes: "string string",
		Example: `regexFind "[0-9]+" "cam-42"`, Result: `"42"`, bound: payForMatch},
	{Name: "regexFindAll", What: "a list of the first N matches, or of all for -1", takes: "string string count",
		Example: `regexFindAll "[0-9]" "a1b2" -1`, Result: `["1","2"]`, bound: payForMatches},
	{Name: "regexReplaceAll", What: "the second argument with each match replaced by the third, where ${1} is the first group",
		takes: "string string string", Example: `regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"`, Result: `"-W-xxW-"`,
		Unlike: "has no limit", run: replaceAll(true)},
	{Name: "regexReplaceAllLiteral", What: "as regexReplaceAll, with a literal third argument", takes: "string string string",
		Example: `regexReplaceAllLiteral "[^a-z]" "a.b" "$"`, Result: `"a$b"`, Unlike: "has no limit", run: replaceAll(false)},
	{Name: "regexSplit", What: "a list of the parts between matches, at most N; all for -1", takes: "string string count",
		Example: `regexSplit "[,;]" "a,b;c" -1`, Result: `["a","b","c"]`, bound: payForMatches},
	{Name: "regexQuoteMeta", What: "an expression that matches the string itself", takes: "string",
		Example: `regexQuoteMeta "1.5"`, Result: `"1\\.5"`},
}

// payForMatch refuses an expression args[0] that is wrong or large, and pays for compiling it
// and for matching the text args[1].
func payForMatch(b *budget.Budget, args []any) error {
	pattern, s := args[0].(string), args[1].(string)
	if len(pattern) > maxPattern {
		return b.Exhaustf("", "regular expressions are limited to %d bytes", maxPattern)
	}
	// Classes such as \pL have hundreds of ranges, and more if case is ignored.
	classes := strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`) + 8*strings.Count(pattern, "(?")
	if err := b.Pay(int64(8*len(pattern)+256*classes), int64(256*len(pattern)+16<<10*classes)); err != nil {
		return err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := "it cannot be parsed"
		e := &syntax.Error{}
		if errors.As(err, &e) {
			reason = string(e.Code)
		}
		return fault.Hintf("see https://pkg.go.dev/regexp/syntax; in a quoted string write \\\\ for \\, or use back quotes",
			"this is not a regular expression: %s", reason)
	}
	size := regexsize.Of(parsed, maxInstructions)
	if size > maxInstructions {
		return b.Exhaustf("", "compiled regular expressions are limited to %d instructions", maxInstructions)
	}
	return b.Pay(int64(4*size)+int64(len(s))*(8+int64(size))/8, int64(256*size))
}

// payForMatches is payForMatch for a list of at most args[2] matches, or of all if that is
// negative.
func payForMatches(b *budget.Budget, args []any) error {
	matches := int64(len(args[1].(string)) + 1)
	if n := args[2].(int64); n >= 0 {
		matches = min(matches, n)
	}
	if err := payForMatch(b, args); err != nil {
		return err
	}
	return b.Allocate(matches * (160 + 24*int64(strings.Count(args[0].(string), "("))))
}

// replaceAll is Regexp.ReplaceAllString, or ReplaceAllLiteralString without expand, that
// pays for each match before the result grows: references such as $1 can multiply the
// length of the string.
func replaceAll(expand bool) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		s, with := args[1].(string), args[2].(string)
		if err := payForMatches(b, []any{args[0], s, int64(-1)}); err != nil {
			return nil, err
		}
		re, err := regexp.Compile(args[0].(string))
		if err != nil {
			return nil, errors.New("this is not a regular expression")
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
}
