package functions

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

const (
	givesZero = "gives 0 for what is no number"
	overflows = "overflows"
	// endlessDigits is about decimal numbers whose digits, and the time for them, have no bound.
	endlessDigits = "computes with any number of digits"
)

var numberFunctions = []Function{
	{Name: "int", What: "a whole number from a string or from a number, whose fraction is dropped", takes: "any", Unlike: givesZero,
		Example: `int "80"`, Result: `80`, run: toInt},
	{Name: "float64", What: "a number from a string or from a whole number", takes: "any", Unlike: givesZero,
		Example: `float64 "0.5"`, Result: `0.5`, run: toFloat},
	{Name: "int64", What: "the same as int", takes: "any", Unlike: givesZero, Example: `int64 "80"`, Result: `80`, run: toInt},
	{Name: "atoi", What: "the same as int", takes: "any", Unlike: givesZero, Example: `atoi "80"`, Result: `80`, run: toInt},
	{Name: "add1", What: "the whole number that follows", takes: "int", Unlike: overflows, Example: `add1 CAPACITY`, Result: `6`,
		run: func(b *budget.Budget, args []any) (any, error) { return sum(b, []any{args[0], int64(1)}) }},
	{Name: "addf", What: "the sum of numbers", takes: "number+", Unlike: endlessDigits, Example: `addf 1.5 2`, Result: `3.5`,
		run: fold(decimal, func(a, b float64) (float64, error) { return finite(a + b) })},
	{Name: "subf", What: "the first number minus the others", takes: "number+", Unlike: endlessDigits,
		Example: `subf 3 0.5`, Result: `2.5`, run: fold(decimal, func(a, b float64) (float64, error) { return finite(a - b) })},
	{Name: "mulf", What: "the product of numbers", takes: "number+", Unlike: endlessDigits, Example: `mulf 1.5 2`, Result: `3`,
		run: fold(decimal, func(a, b float64) (float64, error) { return finite(a * b) })},
	{Name: "divf", What: "the first number divided by the others", takes: "number+", Unlike: endlessDigits,
		Example: `divf 3 2`, Result: `1.5`, run: fold(decimal, func(a, b float64) (float64, error) { return finite(a / b) })},
	{Name: "maxf", What: "the largest number", takes: "number+", Example: `maxf 1.5 2`, Result: `2`},
	{Name: "minf", What: "the smallest number", takes: "number+", Example: `minf 1.5 2`, Result: `1.5`},
	{Name: "floor", What: "the number rounded down; int turns it into a whole number", takes: "number",
		Example: `floor 2.7`, Result: `2`},
	{Name: "ceil", What: "the number rounded up; int turns it into a whole number", takes: "number",
		Example: `ceil 2.1 | int`, Result: `3`},
	{Name: "round", What: "the number rounded to N digits after the point", takes: "number count", Unlike: "rounds negative numbers down",
		Example: `round 2.345 2`, Result: `2.35`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			power := math.Pow10(int(min(max(args[1].(int64), 0), 15)))
			return finite(math.Round(decimal(args[0])*power) / power)
		}},
	{Name: "add", What: "the sum of whole numbers", takes: "int+", Unlike: overflows, Example: `add 1 2 3`, Result: `6`, run: sum},
	{Name: "sub", What: "the first whole number minus the second", takes: "int int", Unlike: overflows,
		Example: `sub CAPACITY 1`, Result: `4`,
		run: fold(whole, func(a, b int64) (int64, error) { return a - b, overflowIf((a-b < a) != (b > 0)) })},
	{Name: "mul", What: "the product of whole numbers", takes: "int+", Unlike: overflows, Example: `mul CAPACITY 2`, Result: `10`,
		run: fold(whole, func(a, b int64) (int64, error) {
			return a * b, overflowIf(b == -1 && a == math.MinInt64 || b != 0 && a*b/b != a)
		})},
	{Name: "div", What: "the first whole number divided by the second, without the remainder", takes: "int int", Unlike: overflows,
		Example: `div 7 2`, Result: `3`,
		run: fold(whole, func(a, b int64) (int64, error) {
			if b == 0 {
				return 0, errDivision
			}
			return a / b, overflowIf(a == math.MinInt64 && b == -1)
		})},
	{Name: "mod", What: "the remainder of a division of whole numbers", takes: "int int", Example: `mod 7 2`, Result: `1`,
		bound: func(_ *budget.Budget, args []any) error {
			if args[1] == int64(0) {
				return errDivision
			}
			return nil
		}},
	{Name: "max", What: "the largest whole number", takes: "int+", Example: `max 1 3 2`, Result: `3`},
	{Name: "min", What: "the smallest whole number", takes: "int+", Example: `min CAPACITY (len NODES)`, Result: `2`},
}

var (
	errDivision = errors.New("division by zero")
	sum         = fold(whole, func(a, b int64) (int64, error) { return a + b, overflowIf((a+b > a) != (b > 0)) })
)

func overflowIf(overflow bool) error {
	if overflow {
		return value.ErrOverflow
	}
	return nil
}

// fold applies step to all arguments, converted to numbers, from left to right.
func fold[N any](convert func(any) N, step func(a, b N) (N, error)) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		result := convert(args[0])
		for _, arg := range args[1:] {
			var err error
			if result, err = step(result, convert(arg)); err != nil {
				return nil, err
			}
		}
		return result, nil
	}
}

func whole(v any) int64 { return v.(int64) }

func decimal(v any) float64 {
	f, _ := toNumber(v)
	return f
}

func finite(f float64) (float64, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, value.ErrNotFinite
	}
	return f, nil
}

const orDefault = "use a property that is a number; if it can be empty, give it a default: "

// toInt returns an error where sprig's int returns 0: a port 0 that the author
// never wrote is worse than an error.
func toInt(_ *budget.Budget, args []any) (any, error) {
	switch v := args[0].(type) {
	case int64:
		return v, nil
	case float64:
		return int64(v), overflowIf(v < -(1<<63) || v >= 1<<63)
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return n, nil
		}
		return nil, fault.Hintf(orDefault+`{{ … | default "80" | int }}`, "the string is not a whole number")
	}
	return nil, fault.Hintf("", "%s cannot become a whole number", value.KindName(args[0]))
}

func toFloat(_ *budget.Budget, args []any) (any, error) {
	if f, ok := toNumber(args[0]); ok {
		return f, nil
	}
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if _, notFinite := finite(f); err == nil && notFinite == nil {
			return f, nil
		}
		return nil, fault.Hintf(orDefault+`{{ … | default "0.5" | float64 }}`, "the string is not a number")
	}
	return nil, fault.Hintf("", "%s cannot become a number", value.KindName(args[0]))
}
