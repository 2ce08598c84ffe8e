package templating

import (
	"cmp"
	"strings"
)

var choiceFunctions = []Function{
	{Name: "and", Group: "Choosing", What: "the first argument that is empty, else the last", least: 1, most: -1,
		Example: `and true (gt CAPACITY 3)`, Result: `true`},
	{Name: "or", Group: "Choosing", What: "the first argument that is not empty, else the last", least: 1, most: -1,
		Example: `or "" "b"`, Result: `"b"`},
	{Name: "not", Group: "Choosing", What: "whether the argument is empty", least: 1, most: 1,
		Example: `not ""`, Result: `true`, run: func(_ *machine, args []any) (any, error) { return !truthy(args[0]), nil }},
	{Name: "eq", Group: "Choosing", What: "whether the first argument equals one of the others", least: 2, most: -1,
		Example: `eq INSTANCE_PROPERTIES.MODEL "b" "t1"`, Result: `true`, run: equalAny},
	{Name: "ne", Group: "Choosing", What: "whether two values differ", least: 2, most: 2,
		Example: `ne CAPACITY 5`, Result: `false`, run: func(m *machine, args []any) (any, error) {
			equal, err := equalAny(m, args)
			return equal != true, err
		}},
	{Name: "lt", Group: "Choosing", What: "whether the first is less than the second", least: 2, most: 2,
		Example: `lt 1 2`, Result: `true`, run: ordered(func(c int) bool { return c < 0 })},
	{Name: "le", Group: "Choosing", What: "whether the first is less than the second or equals it", least: 2, most: 2,
		Example: `le 2 2`, Result: `true`, run: ordered(func(c int) bool { return c <= 0 })},
	{Name: "gt", Group: "Choosing", What: "whether the first is greater than the second", least: 2, most: 2,
		Example: `gt (len NODES) 1`, Result: `true`, run: ordered(func(c int) bool { return c > 0 })},
	{Name: "ge", Group: "Choosing", What: "whether the first is greater than the second or equals it", least: 2, most: 2,
		Example: `ge 1.5 2`, Result: `false`, run: ordered(func(c int) bool { return c >= 0 })},
	{Name: "default", Group: "Choosing", What: "the second argument, or the first when that is empty", least: 2, most: 2,
		Example: `get INSTANCE_PROPERTIES "PORT" | default "80"`, Result: `"80"`, run: func(_ *machine, args []any) (any, error) {
			if truthy(args[1]) {
				return args[1], nil
			}
			return args[0], nil
		}},
	{Name: "coalesce", Group: "Choosing", What: "the first argument that is not empty", least: 1, most: -1,
		Example: `coalesce "" 0 "c"`, Result: `"c"`, run: func(_ *machine, args []any) (any, error) {
			for _, arg := range args {
				if truthy(arg) {
					return arg, nil
				}
			}
			return nil, nil
		}},
	{Name: "ternary", Group: "Choosing", What: "the first argument when the third is true, else the second", least: 3, most: 3,
		Example: `ternary "shared" "alone" (gt CAPACITY 1)`, Result: `"shared"`, run: func(_ *machine, args []any) (any, error) {
			condition, is := args[2].(bool)
			if !is {
				return nil, wrongArgument(args, 2, "true or false")
			}
			if condition {
				return args[0], nil
			}
			return args[1], nil
		}},
	{Name: "empty", Group: "Choosing", What: `whether the argument is empty: false, 0, "", nothing, or a list or map without elements`, least: 1, most: 1,
		Example: `empty NODES`, Result: `false`, run: func(_ *machine, args []any) (any, error) { return !truthy(args[0]), nil }},
	{Name: "all", Group: "Choosing", What: "whether no argument is empty", least: 1, most: -1,
		Example: `all NODES "" 1`, Result: `false`, run: func(_ *machine, args []any) (any, error) {
			for _, arg := range args {
				if !truthy(arg) {
					return false, nil
				}
			}
			return true, nil
		}},
	{Name: "any", Group: "Choosing", What: "whether an argument is not empty", least: 1, most: -1,
		Example: `any "" 0 NODES`, Result: `true`, run: func(_ *machine, args []any) (any, error) {
			for _, arg := range args {
				if truthy(arg) {
					return true, nil
				}
			}
			return false, nil
		}},
	{Name: "fail", Group: "Choosing", What: "nothing: ends the rendering of this object with your message, which is written out in quotes", least: 1, most: 1,
		Example: `or true (fail "never reached")`, Result: `true`, run: func(_ *machine, args []any) (any, error) {
			message, err := textArg(args, 0)
			if err != nil {
				return nil, err
			}
			return nil, hintf("the template itself asks for this error", "%s", message)
		}},
}

func equalAny(_ *machine, args []any) (any, error) {
	for _, other := range args[1:] {
		equal, err := equalScalars(args[0], other)
		if err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

func equalScalars(a, b any) (bool, error) {
	if !isScalar(a) || !isScalar(b) {
		return false, hintf("compare len, or one element", "lists and maps cannot be compared")
	}
	if a == nil || b == nil {
		return a == b, nil
	}
	switch a.(type) {
	case int64, float64:
		if c, err := compareNumbers(a, b); err == nil {
			return c == 0, nil
		}
	case string:
		if b, is := b.(string); is {
			return a == b, nil
		}
	case bool:
		if b, is := b.(bool); is {
			return a == b, nil
		}
	}
	return false, differentTypes(a, b)
}

func differentTypes(a, b any) error {
	hint := "compare values of one type"
	_, aText := a.(string)
	_, bText := b.(string)
	if aText != bText {
		hint = `device properties are text: compare with "…" in quotes, or turn them into numbers with int`
	}
	return hintf(hint, "%s cannot be compared with %s", kindName(a), kindName(b))
}

func compareNumbers(a, b any) (int, error) {
	m, aInt := a.(int64)
	n, bInt := b.(int64)
	if aInt && bInt {
		return cmp.Compare(m, n), nil
	}
	x, err := numberArg([]any{a}, 0)
	if err != nil {
		return 0, differentTypes(a, b)
	}
	y, err := numberArg([]any{b}, 0)
	if err != nil {
		return 0, differentTypes(a, b)
	}
	return cmp.Compare(x, y), nil
}

func ordered(holds func(int) bool) impl {
	return func(_ *machine, args []any) (any, error) {
		a, aText := args[0].(string)
		b, bText := args[1].(string)
		if aText && bText {
			return holds(strings.Compare(a, b)), nil
		}
		c, err := compareNumbers(args[0], args[1])
		return holds(c) && err == nil, err
	}
}
