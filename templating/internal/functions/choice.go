package functions

import (
	"cmp"
	"slices"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var choiceFunctions = []Function{
	{Name: "and", Group: "Choosing", What: "the first argument that is empty, otherwise the last", min: 1, max: -1,
		Example: `and true (gt CAPACITY 3)`, Result: `true`},
	{Name: "or", Group: "Choosing", What: "the first argument that is not empty, otherwise the last", min: 1, max: -1,
		Example: `or "" "b"`, Result: `"b"`},
	{Name: "not", Group: "Choosing", What: "whether the argument is empty", min: 1, max: 1,
		Example: `not ""`, Result: `true`,
		run: func(_ *budget.Budget, args []any) (any, error) { return !value.Truthy(args[0]), nil }},
	{Name: "eq", Group: "Choosing", What: "whether the first argument equals one of the others", min: 2, max: -1,
		Example: `eq INSTANCE_PROPERTIES.MODEL "b" "t1"`, Result: `true`,
		run: equalAny},
	{Name: "ne", Group: "Choosing", What: "whether two values differ", min: 2, max: 2,
		Example: `ne CAPACITY 5`, Result: `false`,
		run: func(b *budget.Budget, args []any) (any, error) {
			equal, err := equalAny(b, args)
			return equal != true, err
		}},
	{Name: "lt", Group: "Choosing", What: "whether the first is less than the second", min: 2, max: 2,
		Example: `lt 1 2`, Result: `true`,
		run: ordered(func(c int) bool { return c < 0 })},
	{Name: "le", Group: "Choosing", What: "whether the first is less than or equal to the second", min: 2, max: 2,
		Example: `le 2 2`, Result: `true`,
		run: ordered(func(c int) bool { return c <= 0 })},
	{Name: "gt", Group: "Choosing", What: "whether the first is greater than the second", min: 2, max: 2,
		Example: `gt (len NODES) 1`, Result: `true`,
		run: ordered(func(c int) bool { return c > 0 })},
	{Name: "ge", Group: "Choosing", What: "whether the first is greater than or equal to the second", min: 2, max: 2,
		Example: `ge 1.5 2`, Result: `false`,
		run: ordered(func(c int) bool { return c >= 0 })},
	{Name: "default", Group: "Choosing", What: "the second argument, or the first if the second is empty", min: 2, max: 2,
		Example: `get INSTANCE_PROPERTIES "PORT" | default "80"`, Result: `"80"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			if value.Truthy(args[1]) {
				return args[1], nil
			}
			return args[0], nil
		}},
	{Name: "coalesce", Group: "Choosing", What: "the first argument that is not empty", min: 1, max: -1,
		Example: `coalesce "" 0 "c"`, Result: `"c"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			for _, arg := range args {
				if value.Truthy(arg) {
					return arg, nil
				}
			}
			return nil, nil
		}},
	{Name: "ternary", Group: "Choosing", What: "the first argument if the third is true, otherwise the second", min: 3, max: 3,
		Example: `ternary "shared" "alone" (gt CAPACITY 1)`, Result: `"shared"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			condition, ok := args[2].(bool)
			if !ok {
				return nil, wrongArgument(args, 2, "true or false")
			}
			if condition {
				return args[0], nil
			}
			return args[1], nil
		}},
	{Name: "empty", Group: "Choosing",
		What: `whether the argument is empty: false, 0, "", nothing, or a list or map without elements`, min: 1, max: 1,
		Example: `empty NODES`, Result: `false`,
		run: func(_ *budget.Budget, args []any) (any, error) { return !value.Truthy(args[0]), nil }},
	{Name: "all", Group: "Choosing", What: "whether no argument is empty", min: 1, max: -1,
		Example: `all NODES "" 1`, Result: `false`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			for _, arg := range args {
				if !value.Truthy(arg) {
					return false, nil
				}
			}
			return true, nil
		}},
	{Name: "any", Group: "Choosing", What: "whether at least one argument is not empty", min: 1, max: -1,
		Example: `any "" 0 NODES`, Result: `true`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			if slices.ContainsFunc(args, value.Truthy) {
				return true, nil
			}
			return false, nil
		}},
	{Name: "fail", Group: "Choosing",
		What: "nothing: rendering of this object fails with your message, which must be a literal", min: 1, max: 1,
		Example: `or true (fail "never reached")`, Result: `true`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			message, err := textArg(args, 0)
			if err != nil {
				return nil, err
			}
			return nil, fault.Hintf("the template itself raised this error", "%s", message)
		}},
}

func equalAny(_ *budget.Budget, args []any) (any, error) {
	for _, other := range args[1:] {
		equal, err := equalScalars(args[0], other)
		if err != nil || equal {
			return equal, err
		}
	}
	return false, nil
}

func equalScalars(a, b any) (bool, error) {
	if !value.IsScalar(a) || !value.IsScalar(b) {
		return false, fault.Hintf("compare the results of len, or single elements", "lists and maps cannot be compared")
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
		if b, ok := b.(string); ok {
			return a == b, nil
		}
	case bool:
		if b, ok := b.(bool); ok {
			return a == b, nil
		}
	}
	return false, differentTypes(a, b)
}

func differentTypes(a, b any) error {
	hint := "compare values of one type"
	_, aText := a.(string)
	_, bText := b.(string)
	switch {
	case value.KindName(a) == value.KindName(b):
		hint = "only numbers and strings have an order"
	case aText != bText:
		hint = `device properties are strings: compare with "…" in quotes, or turn them into numbers with int`
	}
	return fault.Hintf(hint, "%s cannot be compared with %s", value.KindName(a), value.KindName(b))
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
	return func(_ *budget.Budget, args []any) (any, error) {
		a, aText := args[0].(string)
		b, bText := args[1].(string)
		if aText && bText {
			return holds(strings.Compare(a, b)), nil
		}
		c, err := compareNumbers(args[0], args[1])
		return holds(c) && err == nil, err
	}
}
