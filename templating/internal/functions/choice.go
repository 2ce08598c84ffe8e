package functions

import (
	"cmp"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var choiceFunctions = []Function{
	{Name: "and", What: "the first argument that is empty, otherwise the last", takes: "any+",
		Example: `and true (gt CAPACITY 3)`, Result: `true`, run: shortCircuit},
	{Name: "or", What: "the first argument that is not empty, otherwise the last", takes: "any+",
		Example: `or "" "b"`, Result: `"b"`, run: shortCircuit},
	{Name: "not", What: "whether the argument is empty", takes: "any", Example: `not ""`, Result: `true`,
		run: func(_ *budget.Budget, args []any) (any, error) { return !value.Truthy(args[0]), nil }},
	{Name: "eq", What: "whether the first argument equals one of the others", takes: "any any+",
		Example: `eq INSTANCE_PROPERTIES.MODEL "b" "t1"`, Result: `true`, run: equalAny},
	{Name: "ne", What: "whether two values differ", takes: "any any", Example: `ne CAPACITY 5`, Result: `false`,
		run: func(b *budget.Budget, args []any) (any, error) {
			equal, err := equalAny(b, args)
			return equal != true, err
		}},
	{Name: "lt", What: "whether the first is less than the second", takes: "any any",
		Example: `lt 1 2`, Result: `true`, run: ordered(func(c int) bool { return c < 0 })},
	{Name: "le", What: "whether the first is less than or equal to the second", takes: "any any",
		Example: `le 2 2`, Result: `true`, run: ordered(func(c int) bool { return c <= 0 })},
	{Name: "gt", What: "whether the first is greater than the second", takes: "any any",
		Example: `gt (len NODES) 1`, Result: `true`, run: ordered(func(c int) bool { return c > 0 })},
	{Name: "ge", What: "whether the first is greater than or equal to the second", takes: "any any",
		Example: `ge 1.5 2`, Result: `false`, run: ordered(func(c int) bool { return c >= 0 })},
	{Name: "default", What: "the second argument, or the first if the second is empty", takes: "any any",
		Example: `get INSTANCE_PROPERTIES "PORT" | default "80"`, Result: `"80"`},
	{Name: "coalesce", What: "the first argument that is not empty", takes: "any+", Example: `coalesce "" 0 "c"`, Result: `"c"`},
	{Name: "ternary", What: "the first argument if the third is true, otherwise the second", takes: "any any bool",
		Example: `ternary "shared" "alone" (gt CAPACITY 1)`, Result: `"shared"`},
	{Name: "empty", What: `whether the argument is empty: false, 0, "", nothing, or a list or map without elements`, takes: "any",
		Example: `empty NODES`, Result: `false`},
	{Name: "all", What: "whether no argument is empty", takes: "any+", Example: `all NODES "" 1`, Result: `false`},
	{Name: "any", What: "whether at least one argument is not empty", takes: "any+", Example: `any "" 0 NODES`, Result: `true`},
	{Name: "fail", What: "nothing: rendering of this object fails with your message, which must be a literal", takes: "string",
		Example: `or true (fail "never reached")`, Result: `true`, Unlike: "takes any string",
		run: func(_ *budget.Budget, args []any) (any, error) {
			return nil, fault.Hintf("the template itself raised this error", "%s", args[0])
		}},
}

// shortCircuit stands for and and or, whose arguments package expr evaluates only as far as
// they are needed. It is never called.
func shortCircuit(*budget.Budget, []any) (any, error) { return nil, nil }

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
	if c, ok := compareNumbers(a, b); ok {
		return c == 0, nil
	}
	if a != nil && b != nil && value.KindName(a) != value.KindName(b) {
		return false, differentTypes(a, b)
	}
	return a == b, nil
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

func compareNumbers(a, b any) (c int, ok bool) {
	m, aInt := a.(int64)
	n, bInt := b.(int64)
	if aInt && bInt {
		return cmp.Compare(m, n), true
	}
	x, aNumber := toNumber(a)
	y, bNumber := toNumber(b)
	return cmp.Compare(x, y), aNumber && bNumber
}

func ordered(holds func(int) bool) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		a, aText := args[0].(string)
		b, bText := args[1].(string)
		if aText && bText {
			return holds(strings.Compare(a, b)), nil
		}
		c, ok := compareNumbers(args[0], args[1])
		if !ok {
			return nil, differentTypes(args[0], args[1])
		}
		return holds(c), nil
	}
}
