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

var numberFunctions = []Function{
	{Name: "int", Group: "Numbers", What: "a whole number from a string or from a number, whose fraction is dropped", min: 1, max: 1,
		Example: `int "80"`, Result: `80`,
		run: func(_ *budget.Budget, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "float64", Group: "Numbers", What: "a number from a string or from a whole number", min: 1, max: 1,
		Example: `float64 "0.5"`, Result: `0.5`,
		run: func(_ *budget.Budget, args []any) (any, error) { return toFloat(args[0]) }},
	{Name: "int64", Group: "Numbers", What: "the same as int", min: 1, max: 1,
		Example: `int64 "80"`, Result: `80`,
		run: func(_ *budget.Budget, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "atoi", Group: "Numbers", What: "the same as int", min: 1, max: 1,
		Example: `atoi "80"`, Result: `80`,
		run: func(_ *budget.Budget, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "add1", Group: "Numbers", What: "the whole number that follows", min: 1, max: 1,
		Example: `add1 CAPACITY`, Result: `6`,
		run: func(b *budget.Budget, args []any) (any, error) {
			n, err := intArg(args, 0)
			if err == nil && n == math.MaxInt64 {
				err = value.ErrOverflow
			}
			return n + 1, err
		}},
	{Name: "addf", Group: "Numbers", What: "the sum of numbers", min: 1, max: -1,
		Example: `addf 1.5 2`, Result: `3.5`,
		run: foldf(func(a, b float64) float64 { return a + b })},
	{Name: "subf", Group: "Numbers", What: "the first number minus the others", min: 1, max: -1,
		Example: `subf 3 0.5`, Result: `2.5`,
		run: foldf(func(a, b float64) float64 { return a - b })},
	{Name: "mulf", Group: "Numbers", What: "the product of numbers", min: 1, max: -1,
		Example: `mulf 1.5 2`, Result: `3`,
		run: foldf(func(a, b float64) float64 { return a * b })},
	{Name: "divf", Group: "Numbers", What: "the first number divided by the others", min: 1, max: -1,
		Example: `divf 3 2`, Result: `1.5`,
		run: foldf(func(a, b float64) float64 { return a / b })},
	{Name: "maxf", Group: "Numbers", What: "the largest number", min: 1, max: -1,
		Example: `maxf 1.5 2`, Result: `2`,
		run: foldf(math.Max)},
	{Name: "minf", Group: "Numbers", What: "the smallest number", min: 1, max: -1,
		Example: `minf 1.5 2`, Result: `1.5`,
		run: foldf(math.Min)},
	{Name: "floor", Group: "Numbers", What: "the number rounded down; int turns it into a whole number", min: 1, max: 1,
		Example: `floor 2.7`, Result: `2`,
		run: foldf(nil, math.Floor)},
	{Name: "ceil", Group: "Numbers", What: "the number rounded up; int turns it into a whole number", min: 1, max: 1,
		Example: `ceil 2.1 | int`, Result: `3`,
		run: foldf(nil, math.Ceil)},
	{Name: "round", Group: "Numbers", What: "the number rounded to N digits after the point", min: 2, max: 2,
		Example: `round 2.345 2`, Result: `2.35`,
		run: func(b *budget.Budget, args []any) (any, error) {
			digits, err := smallArg(args, 1)
			if err != nil {
				return nil, err
			}
			power := math.Pow10(min(max(digits, 0), 15))
			return foldf(nil, func(f float64) float64 { return math.Round(f*power) / power })(b, args[:1])
		}},
	{Name: "add", Group: "Numbers", What: "the sum of whole numbers", min: 1, max: -1,
		Example: `add 1 2 3`, Result: `6`,
		run: fold(func(a, b int64) (int64, error) {
			if sum := a + b; (sum > a) == (b > 0) {
				return sum, nil
			}
			return 0, value.ErrOverflow
		})},
	{Name: "sub", Group: "Numbers", What: "the first whole number minus the second", min: 2, max: 2,
		Example: `sub CAPACITY 1`, Result: `4`,
		run: fold(func(a, b int64) (int64, error) {
			if difference := a - b; (difference < a) == (b > 0) {
				return difference, nil
			}
			return 0, value.ErrOverflow
		})},
	{Name: "mul", Group: "Numbers", What: "the product of whole numbers", min: 1, max: -1,
		Example: `mul CAPACITY 2`, Result: `10`,
		run: fold(multiply)},
	{Name: "div", Group: "Numbers", What: "the first whole number divided by the second, without the remainder", min: 2, max: 2,
		Example: `div 7 2`, Result: `3`,
		run: fold(func(a, b int64) (int64, error) {
			switch {
			case b == 0:
				return 0, errors.New("division by zero")
			case a == math.MinInt64 && b == -1:
				return 0, value.ErrOverflow
			}
			return a / b, nil
		})},
	{Name: "mod", Group: "Numbers", What: "the remainder of a division of whole numbers", min: 2, max: 2,
		Example: `mod 7 2`, Result: `1`,
		run: fold(func(a, b int64) (int64, error) {
			switch b {
			case 0:
				return 0, errors.New("division by zero")
			case -1:
				return 0, nil
			}
			return a % b, nil
		})},
	{Name: "max", Group: "Numbers", What: "the largest whole number", min: 1, max: -1,
		Example: `max 1 3 2`, Result: `3`,
		run: fold(func(a, b int64) (int64, error) { return max(a, b), nil })},
	{Name: "min", Group: "Numbers", What: "the smallest whole number", min: 1, max: -1,
		Example: `min CAPACITY (len NODES)`, Result: `2`,
		run: fold(func(a, b int64) (int64, error) { return min(a, b), nil })},
}

func multiply(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	product := a * b
	if product/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, value.ErrOverflow
	}
	return product, nil
}

// fold applies step to all arguments from left to right.
func fold(step func(a, b int64) (int64, error)) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		result, err := intArg(args, 0)
		for i := 1; i < len(args) && err == nil; i++ {
			var next int64
			if next, err = intArg(args, i); err == nil {
				result, err = step(result, next)
			}
		}
		return result, err
	}
}

// foldf applies step to all arguments from left to right, and after to the result.
// A result that is not finite is an error.
func foldf(step func(a, b float64) float64, after ...func(float64) float64) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		result, err := numberArg(args, 0)
		for i := 1; i < len(args) && err == nil; i++ {
			var next float64
			if next, err = numberArg(args, i); err == nil {
				result = step(result, next)
			}
		}
		for _, f := range after {
			result = f(result)
		}
		if err == nil && (math.IsNaN(result) || math.IsInf(result, 0)) {
			err = value.ErrNotFinite
		}
		return result, err
	}
}

// toInt returns an error where sprig's int returns 0: a port 0 that the author
// never wrote is worse than an error.
func toInt(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		if v >= -(1<<63) && v < 1<<63 {
			return int64(v), nil
		}
		return nil, value.ErrOverflow
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
	return nil, fault.Hintf("", "%s cannot become a whole number", value.KindName(v))
}

const orDefault = "use a property that is a number; if it can be empty, give it a default: "

func toFloat(v any) (any, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, fault.Hintf(orDefault+`{{ … | default "0.5" | float64 }}`, "the string is not a number")
	}
	return nil, fault.Hintf("", "%s cannot become a number", value.KindName(v))
}
