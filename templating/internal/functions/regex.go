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
		bound: payForReplacing},
	{Name: "regexReplaceAllLiteral", What: "as regexReplaceAll, with a literal third argument", takes: "string string string",
		Example: `regexReplaceAllLiteral "[^a-z]" "a.b" "$"`, Result: `"a$b"`, bound: payForReplacing},
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

// payForReplacing is payForMatches for a text in which all matches are replaced by args[2],
// where each reference such as $1 repeats a part of the match. It has to find the matches to
// know how long the text becomes.
func payForReplacing(b *budget.Budget, args []any) error {
	s, with := args[1].(string), args[2].(string)
	if err := payForMatches(b, []any{args[0], s, int64(-1)}); err != nil {
		return err
	}
	re, err := regexp.Compile(args[0].(string))
	if err != nil {
		return errors.New("this is not a regular expression")
	}
	bytes, references := int64(len(s)), strings.Count(with, "$")
	for _, match := range re.FindAllStringIndex(s, -1) {
		bytes += int64(len(with) + references*(match[1]-match[0]))
	}
	return b.Pay(bytes/64, 5*bytes) // the text is appended to while it grows
}
