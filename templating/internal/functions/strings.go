package functions

import (
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
)

var textFunctions = []Function{
	{Name: "cat", Group: "Strings", What: "the arguments with spaces between them", min: 1, max: -1, deep: true,
		Example: `cat "on" (first NODES)`, Result: `"on node-a"`,
		run: func(b *budget.Budget, args []any) (any, error) { return join(b, args, " ") }},
	{Name: "indent", Group: "Strings", What: "each line indented by N spaces", min: 2, max: 2,
		Example: `indent 2 "a\nb"`, Result: `"  a\n  b"`,
		run: func(b *budget.Budget, args []any) (any, error) { return indent(b, args, "") }},
	{Name: "nindent", Group: "Strings", What: "as indent, on a new line", min: 2, max: 2,
		Example: `nindent 2 "a"`, Result: `"\n  a"`,
		run: func(b *budget.Budget, args []any) (any, error) { return indent(b, args, "\n") }},
	{Name: "repeat", Group: "Strings", What: "the string N times", min: 2, max: 2,
		Example: `repeat 3 "ab"`, Result: `"ababab"`,
		run: repeat},
	{Name: "substr", Group: "Strings",
		What: "the characters from position A up to, but not including, B; to the end for a negative B", min: 3, max: 3,
		Example: `substr 1 3 "camera"`, Result: `"am"`,
		run: substring},
	{Name: "trimAll", Group: "Strings", What: "the second argument without the characters of the first at both ends", min: 2, max: 2,
		Example: `trimAll "/" "/a/b/"`, Result: `"a/b"`,
		run: text2(func(cutset, s string) string { return strings.Trim(s, cutset) })},
	{Name: "nospace", Group: "Strings", What: "the string without white space", min: 1, max: 1, slow: true,
		Example: `nospace "a b c"`, Result: `"abc"`,
		run: sprigText("nospace")},
	{Name: "abbrev", Group: "Strings", What: "at most N characters, with ... at the end if shortened; N is at least 4", min: 2, max: 2,
		Example: `abbrev 5 "camera"`, Result: `"ca..."`,
		run: count1text1(abbreviate)},
	{Name: "wrap", Group: "Strings", What: "the string broken at spaces into lines of at most N characters", min: 2, max: 2, slow: true,
		Example: `wrap 5 "one two"`, Result: `"one\ntwo"`,
		run: wrap},
	{Name: "upper", Group: "Strings", What: "in upper case", min: 1, max: 1,
		Example: `upper "abc"`, Result: `"ABC"`,
		run: text1(strings.ToUpper)},
	{Name: "lower", Group: "Strings", What: "in lower case", min: 1, max: 1,
		Example: `lower "ABC"`, Result: `"abc"`,
		run: text1(strings.ToLower)},
	{Name: "trim", Group: "Strings", What: "the string without white space at both ends", min: 1, max: 1,
		Example: `trim "  a "`, Result: `"a"`,
		run: text1(strings.TrimSpace)},
	{Name: "trimPrefix", Group: "Strings", What: "the second argument without the first at its beginning", min: 2, max: 2,
		Example: `trimPrefix "rtsp://" "rtsp://10.0.0.5"`, Result: `"10.0.0.5"`,
		run: text2(func(prefix, s string) string { return strings.TrimPrefix(s, prefix) })},
	{Name: "trimSuffix", Group: "Strings", What: "the second argument without the first at its end", min: 2, max: 2,
		Example: `trimSuffix "/" "a/"`, Result: `"a"`,
		run: text2(func(suffix, s string) string { return strings.TrimSuffix(s, suffix) })},
	{Name: "hasPrefix", Group: "Strings", What: "whether the second argument begins with the first", min: 2, max: 2,
		Example: `hasPrefix "ca" "camera"`, Result: `true`,
		run: text2(func(prefix, s string) bool { return strings.HasPrefix(s, prefix) })},
	{Name: "hasSuffix", Group: "Strings", What: "whether the second argument ends with the first", min: 2, max: 2,
		Example: `hasSuffix "ra" "camera"`, Result: `true`,
		run: text2(func(suffix, s string) bool { return strings.HasSuffix(s, suffix) })},
	{Name: "contains", Group: "Strings", What: "whether the second argument contains the first", min: 2, max: 2,
		Example: `contains "mer" "camera"`, Result: `true`,
		run: text2(func(part, s string) bool { return strings.Contains(s, part) })},
	{Name: "replace", Group: "Strings",
		What: "the third argument with each occurrence of the first replaced by the second", min: 3, max: 3, slow: true,
		Example: `replace "." "-" "a.b.c"`, Result: `"a-b-c"`,
		run: replace},
	{Name: "trunc", Group: "Strings", What: "the first N characters; the last N for a negative N", min: 2, max: 2,
		Example: `trunc 3 "camera"`, Result: `"cam"`,
		run: count1text1(truncate)},
	{Name: "quote", Group: "Strings", What: "in double quotes, with escapes", min: 1, max: 1,
		Example: `quote "a"`, Result: `"\"a\""`,
		run: func(b *budget.Budget, args []any) (any, error) { return formatVerb(b, "%q", args[0]) }},
	{Name: "squote", Group: "Strings", What: "in single quotes", min: 1, max: 1,
		Example: `squote "a"`, Result: `"'a'"`,
		run: func(b *budget.Budget, args []any) (any, error) {
			formatted, err := Text(b, args[0])
			return "'" + formatted + "'", err
		}},
	{Name: "toString", Group: "Strings", What: "any value as a string: lists as a,b", min: 1, max: 1, deep: true,
		Example: `CAPACITY | toString`, Result: `"5"`,
		run: func(b *budget.Budget, args []any) (any, error) { return Text(b, args[0]) }},
	{Name: "print", Group: "Strings", What: "the arguments one after the other", min: 0, max: -1, deep: true,
		Example: `print "cam-" CAPACITY`, Result: `"cam-5"`,
		run: printAll},
	{Name: "printf", Group: "Strings",
		What: "a string with %s, %d, %v, %q, %t, %f, %g, %e, %x, %X, %o, %b and %c filled in; widths to 1024", min: 1, max: -1,
		Example: `printf "%s-%03d" "cam" 7`, Result: `"cam-007"`,
		run: printf},
}

func replace(b *budget.Budget, args []any) (any, error) {
	var texts [3]string
	for i := range texts {
		var err error
		if texts[i], err = textArg(args, i); err != nil {
			return nil, err
		}
	}
	old, with, s := texts[0], texts[1], texts[2]
	if err := b.Grow(len(s) + strings.Count(s, old)*(len(with)-len(old))); err != nil {
		return nil, err
	}
	return strings.ReplaceAll(s, old, with), nil
}

func truncate(n int, s string) any {
	count := utf8.RuneCountInString(s)
	if max(n, -n) >= count {
		return s
	}
	runes := []rune(s)
	if n < 0 {
		return string(runes[count+n:])
	}
	return string(runes[:n])
}

func printAll(b *budget.Budget, args []any) (any, error) {
	parts := make([]string, 0, 2*len(args))
	size, afterText := 0, true
	for _, arg := range args {
		_, isText := arg.(string)
		if !isText && !afterText {
			parts = append(parts, " ") // as text/template does between two operands that are not strings
		}
		afterText = isText
		formatted, err := Text(b, arg)
		if err != nil {
			return nil, err
		}
		parts = append(parts, formatted)
		size += len(formatted) + 1
	}
	if err := b.Grow(size + 2*budget.StringHeader*len(args)); err != nil {
		return nil, err
	}
	return strings.Join(parts, ""), nil
}

func indent(b *budget.Budget, args []any, before string) (any, error) {
	n, err := smallArg(args, 0)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 1)
	if err != nil {
		return nil, err
	}
	n = max(n, 0)
	if err := b.Grow(len(s) + n*(strings.Count(s, "\n")+1)); err != nil {
		return nil, err
	}
	pad := strings.Repeat(" ", n)
	return before + pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
}

func repeat(b *budget.Budget, args []any) (any, error) {
	n, err := intArg(args, 0)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 1)
	if err != nil {
		return nil, err
	}
	times := int(min(max(n, 0), budget.MaxObjectBytes+1))
	if err := b.Grow(times * len(s)); err != nil {
		return nil, err
	}
	return strings.Repeat(s, times), nil
}

func substring(_ *budget.Budget, args []any) (any, error) {
	from, err := smallArg(args, 0)
	if err != nil {
		return nil, err
	}
	to, err := smallArg(args, 1)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 2)
	if err != nil {
		return nil, err
	}
	runes := []rune(s)
	if to < 0 || to > len(runes) {
		to = len(runes)
	}
	return string(runes[min(max(from, 0), to):to]), nil
}

func abbreviate(n int, s string) any {
	const dots = "..."
	runes := []rune(s)
	if n <= len(dots) || len(runes) <= n {
		return s
	}
	return string(runes[:n-len(dots)]) + dots
}

// wrap breaks lines at spaces only. A longer word stays whole.
func wrap(b *budget.Budget, args []any) (any, error) {
	n, err := smallArg(args, 0)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 1)
	if err != nil {
		return nil, err
	}
	if err := b.Allocate(int64(len(s) + budget.StringHeader*(strings.Count(s, " ")+1))); err != nil {
		return nil, err
	}
	var out strings.Builder
	out.Grow(len(s))
	column := 0
	for i, word := range strings.Split(s, " ") {
		width := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+width > n:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += width
	}
	return out.String(), nil
}
