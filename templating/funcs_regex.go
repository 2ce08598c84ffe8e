package templating

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Limits of regular expressions. Go's are linear in the text, but also in the
// size of the expression, and a few characters can stand for a large one.
const (
	maxPattern      = 512
	maxInstructions = 1000
)

var regexFunctions = []Function{
	{Name: "regexMatch", Group: "Regular expressions", What: "whether the text matches", least: 2, most: 2,
		Example: `regexMatch "^rtsp://" INSTANCE_PROPERTIES.URL`, Result: `true`, run: matching(func(_ *machine, re *regexp.Regexp, args []any) (any, error) {
			return re.MatchString(args[1].(string)), nil
		})},
	{Name: "regexFind", Group: "Regular expressions", What: `the first match, or ""`, least: 2, most: 2,
		Example: `regexFind "[0-9]+" "cam-42"`, Result: `"42"`, run: matching(func(_ *machine, re *regexp.Regexp, args []any) (any, error) {
			return re.FindString(args[1].(string)), nil
		})},
	{Name: "regexFindAll", Group: "Regular expressions", What: "a list of the first N matches, of all for -1", least: 3, most: 3,
		Example: `regexFindAll "[0-9]" "a1b2" -1`, Result: `["1","2"]`, run: matching(func(m *machine, re *regexp.Regexp, args []any) (any, error) {
			n, err := smallArg(args, 2)
			if err != nil {
				return nil, err
			}
			return findAll(m, re, args[1].(string), n)
		})},
	{Name: "regexReplaceAll", Group: "Regular expressions", What: "the second argument with each match replaced by the third, where ${1} is the first group", least: 3, most: 3,
		Example: `regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W"`, Result: `"-W-xxW-"`, run: matching(func(m *machine, re *regexp.Regexp, args []any) (any, error) {
			return replaceAll(m, re, args, true)
		})},
	{Name: "regexReplaceAllLiteral", Group: "Regular expressions", What: "as regexReplaceAll, without groups in the third argument", least: 3, most: 3,
		Example: `regexReplaceAllLiteral "[^a-z]" "a.b" "$"`, Result: `"a$b"`, run: matching(func(m *machine, re *regexp.Regexp, args []any) (any, error) {
			return replaceAll(m, re, args, false)
		})},
	{Name: "regexSplit", Group: "Regular expressions", What: "a list of the parts between matches, at most N; all for -1", least: 3, most: 3,
		Example: `regexSplit "[,;]" "a,b;c" -1`, Result: `["a","b","c"]`, run: matching(func(m *machine, re *regexp.Regexp, args []any) (any, error) {
			n, err := smallArg(args, 2)
			if err != nil {
				return nil, err
			}
			if err := payForMatches(m, re, args[1].(string), n); err != nil {
				return nil, err
			}
			return anyList(re.Split(args[1].(string), n)), nil
		})},
	{Name: "regexQuoteMeta", Group: "Regular expressions", What: "an expression that matches the text itself", least: 1, most: 1,
		Example: `regexQuoteMeta "1.5"`, Result: `"1\\.5"`, run: text1(regexp.QuoteMeta)},
}

// matching compiles the expression args[0] and pays for running it over the text
// args[1].
func matching(run func(m *machine, re *regexp.Regexp, args []any) (any, error)) impl {
	return func(m *machine, args []any) (any, error) {
		pattern, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		s, err := textArg(args, 1)
		if err != nil {
			return nil, err
		}
		re, size, err := m.regexp(pattern)
		if err != nil {
			return nil, err
		}
		if err := m.budget.step(int64(len(s)) * (8 + int64(size)) / 8); err != nil {
			return nil, err
		}
		return run(m, re, args)
	}
}

// regexp compiles an expression whose compiled size is known to be small.
func (m *machine) regexp(pattern string) (*regexp.Regexp, int, error) {
	if len(pattern) > maxPattern {
		return nil, 0, m.budget.exhaust(&LimitError{What: "regular expressions", Limit: maxPattern, Unit: "bytes"})
	}
	// Classes such as \pL have hundreds of ranges, and more without case.
	classes := strings.Count(pattern, `\p`) + strings.Count(pattern, `\P`) + 8*strings.Count(pattern, "(?")
	if err := m.budget.step(int64(8*len(pattern) + 256*classes)); err != nil {
		return nil, 0, err
	}
	if err := m.budget.allocate(int64(256*len(pattern) + 16<<10*classes)); err != nil {
		return nil, 0, err
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		reason := "it cannot be read"
		if e, is := err.(*syntax.Error); is {
			reason = string(e.Code)
		}
		return nil, 0, hintf("see https://pkg.go.dev/regexp/syntax; in text in quotes write \\\\ for \\, or use back quotes", "this is not a regular expression: %s", reason)
	}
	size := programSize(parsed)
	if size > maxInstructions {
		return nil, 0, m.budget.exhaust(&LimitError{What: "compiled regular expressions", Limit: maxInstructions, Unit: "instructions"})
	}
	if err := m.budget.step(int64(4 * size)); err != nil {
		return nil, 0, err
	}
	if err := m.budget.allocate(int64(256 * size)); err != nil {
		return nil, 0, err
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, 0, fmt.Errorf("this is not a regular expression")
	}
	return re, size, nil
}

// programSize estimates the compiled size of an expression before its repetitions
// are written out.
func programSize(re *syntax.Regexp) int {
	size := 1 + len(re.Rune)/16
	if re.Op == syntax.OpLiteral {
		size = 1 + len(re.Rune)
	}
	for _, sub := range re.Sub {
		if size += programSize(sub); size > maxInstructions {
			return size
		}
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Max, re.Min, 1) + 1
	}
	return size + 1
}

// payForMatches pays for what as many matches as there can be will need.
func payForMatches(m *machine, re *regexp.Regexp, s string, n int) error {
	matches := len(s) + 1
	if n >= 0 {
		matches = min(matches, n)
	}
	return m.budget.allocate(int64(matches) * int64(160+24*re.NumSubexp()))
}

func findAll(m *machine, re *regexp.Regexp, s string, n int) (any, error) {
	if err := payForMatches(m, re, s, n); err != nil {
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

func replaceAll(m *machine, re *regexp.Regexp, args []any, expand bool) (any, error) {
	s := args[1].(string)
	with, err := textArg(args, 2)
	if err != nil {
		return nil, err
	}
	if err := payForMatches(m, re, s, -1); err != nil {
		return nil, err
	}
	references := 0
	if expand {
		references = strings.Count(with, "$")
	}
	var out []byte
	end := 0
	for _, match := range re.FindAllStringSubmatchIndex(s, -1) {
		if err := m.grows(len(out) + match[0] - end + len(with) + references*(match[1]-match[0])); err != nil {
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
	if err := m.grows(len(out) + len(s) - end); err != nil {
		return nil, err
	}
	return string(append(out, s[end:]...)), m.budget.allocate(3 * int64(len(out)))
}
