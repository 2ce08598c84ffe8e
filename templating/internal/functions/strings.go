package functions

import (
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
)

const (
	asGo      = "formats lists, maps and large numbers as Go does"
	belowZero = "fails for a negative N"
)

var textFunctions = []Function{
	{Name: "cat", What: "the arguments with spaces between them", takes: "any+", deep: true, Unlike: asGo,
		Example: `cat "on" (first NODES)`, Result: `"on node-a"`,
		run: func(b *budget.Budget, args []any) (any, error) { return join(b, args, " ") }},
	{Name: "indent", What: "each line indented by N spaces", takes: "count string", Unlike: belowZero,
		Example: `indent 2 "a\nb"`, Result: `"  a\n  b"`, run: indent("")},
	{Name: "nindent", What: "as indent, on a new line", takes: "count string", Unlike: belowZero,
		Example: `nindent 2 "a"`, Result: `"\n  a"`, run: indent("\n")},
	{Name: "repeat", What: "the string N times", takes: "int string", Unlike: belowZero, Example: `repeat 3 "ab"`, Result: `"ababab"`,
		run: func(b *budget.Budget, args []any) (any, error) {
			times, s := int(min(max(args[0].(int64), 0), budget.MaxObjectBytes+1)), args[1].(string)
			if err := b.Grow(times * len(s)); err != nil {
				return nil, err
			}
			return strings.Repeat(s, times), nil
		}},
	{Name: "substr", What: "the characters from position A up to, but not including, B; to the end for a negative B",
		takes: "count count string", Unlike: "counts bytes, and fails beyond the end",
		Example: `substr 1 3 "camera"`, Result: `"am"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			from, to, runes := args[0].(int64), args[1].(int64), []rune(args[2].(string))
			if to < 0 || to > int64(len(runes)) {
				to = int64(len(runes))
			}
			return string(runes[min(max(from, 0), to):to]), nil
		}},
	{Name: "trimAll", What: "the second argument without the characters of the first at both ends", takes: "string string",
		Example: `trimAll "/" "/a/b/"`, Result: `"a/b"`},
	{Name: "nospace", What: "the string without white space", takes: "string", slow: true, Example: `nospace "a b c"`, Result: `"abc"`},
	{Name: "abbrev", What: "at most N characters, with ... at the end if shortened; N is at least 4", takes: "count string",
		Example: `abbrev 5 "camera"`, Result: `"ca..."`, Unlike: "counts bytes",
		run: func(_ *budget.Budget, args []any) (any, error) {
			const dots = "..."
			n, s := int(args[0].(int64)), args[1].(string)
			if n <= len(dots) || utf8.RuneCountInString(s) <= n {
				return s, nil
			}
			return truncate(n-len(dots), s) + dots, nil
		}},
	{Name: "wrap", What: "the string broken at spaces into lines of at most N bytes", takes: "count string", slow: true,
		Example: `wrap 5 "one two"`, Result: `"one\ntwo"`},
	{Name: "upper", What: "in upper case", takes: "string", Example: `upper "abc"`, Result: `"ABC"`},
	{Name: "lower", What: "in lower case", takes: "string", Example: `lower "ABC"`, Result: `"abc"`},
	{Name: "title", What: "each word with an upper-case first letter", takes: "string", slow: true,
		Example: `title "front door"`, Result: `"Front Door"`},
	{Name: "untitle", What: "each word with a lower-case first letter", takes: "string", slow: true,
		Example: `untitle "Front Door"`, Result: `"front door"`},
	{Name: "swapcase", What: "lower-case letters in upper case and the reverse", takes: "string", slow: true,
		Example: `swapcase "aB"`, Result: `"Ab"`},
	{Name: "snakecase", What: "words joined by _", takes: "string", slow: true, Example: `snakecase "FrontDoor"`, Result: `"front_door"`},
	{Name: "camelcase", What: "words with upper-case first letters, joined", takes: "string", slow: true,
		Example: `camelcase "front_door"`, Result: `"FrontDoor"`},
	{Name: "kebabcase", What: "words joined by -", takes: "string", slow: true, Example: `kebabcase "FrontDoor"`, Result: `"front-door"`},
	{Name: "initials", What: "the first letter of each word", takes: "string", slow: true, Example: `initials "front door"`, Result: `"fd"`},
	{Name: "trim", What: "the string without white space at both ends", takes: "string", Example: `trim "  a "`, Result: `"a"`},
	{Name: "trimPrefix", What: "the second argument without the first at its beginning", takes: "string string",
		Example: `trimPrefix "rtsp://" "rtsp://10.0.0.5"`, Result: `"10.0.0.5"`},
	{Name: "trimSuffix", What: "the second argument without the first at its end", takes: "string string",
		Example: `trimSuffix "/" "a/"`, Result: `"a"`},
	{Name: "hasPrefix", What: "whether the second argument begins with the first", takes: "string string",
		Example: `hasPrefix "ca" "camera"`, Result: `true`},
	{Name: "hasSuffix", What: "whether the second argument ends with the first", takes: "string string",
		Example: `hasSuffix "ra" "camera"`, Result: `true`},
	{Name: "contains", What: "whether the second argument contains the first", takes: "string string",
		Example: `contains "mer" "camera"`, Result: `true`},
	{Name: "replace", What: "the third argument with each occurrence of the first replaced by the second", takes: "string string string",
		Example: `replace "." "-" "a.b.c"`, Result: `"a-b-c"`, slow: true,
		bound: func(b *budget.Budget, args []any) error {
			old, with, s := args[0].(string), args[1].(string), args[2].(string)
			return b.Grow(len(s) + strings.Count(s, old)*(len(with)-len(old)))
		}},
	{Name: "trunc", What: "the first N characters; the last N for a negative N", takes: "count string", Unlike: "counts bytes",
		Example: `trunc 3 "camera"`, Result: `"cam"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			return truncate(int(args[0].(int64)), args[1].(string)), nil
		}},
	{Name: "quote", What: "in double quotes, with escapes", takes: "any", Example: `quote "a"`, Result: `"\"a\""`, Unlike: asGo,
		run: func(b *budget.Budget, args []any) (any, error) { return formatVerb(b, "%q", args[0]) }},
	{Name: "squote", What: "in single quotes", takes: "any", Example: `squote "a"`, Result: `"'a'"`, Unlike: asGo,
		run: func(b *budget.Budget, args []any) (any, error) {
			formatted, err := Text(b, args[0])
			return "'" + formatted + "'", err
		}},
	{Name: "toString", What: "any value as a string: lists as a,b", takes: "any", deep: true, Unlike: asGo,
		Example: `CAPACITY | toString`, Result: `"5"`,
		run: func(b *budget.Budget, args []any) (any, error) { return Text(b, args[0]) }},
	{Name: "print", What: "the arguments one after the other", takes: "any*", deep: true,
		Example: `print "cam-" CAPACITY`, Result: `"cam-5"`, run: printAll},
	{Name: "printf", What: "a string with %s, %d, %v, %q, %t, %f, %g, %e, %x, %X, %o, %b and %c filled in; widths to 1024",
		takes: "string any*", Example: `printf "%s-%03d" "cam" 7`, Result: `"cam-007"`, run: printf},
}

// truncate returns the first n characters, or the last for a negative n.
func truncate(n int, s string) string {
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

func indent(before string) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		n, s := int(max(args[0].(int64), 0)), args[1].(string)
		if err := b.Grow(len(s) + n*(strings.Count(s, "\n")+1)); err != nil {
			return nil, err
		}
		pad := strings.Repeat(" ", n)
		return before + pad + strings.ReplaceAll(s, "\n", "\n"+pad), nil
	}
}
