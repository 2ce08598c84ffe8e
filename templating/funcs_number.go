package templating

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var numberFunctions = []Function{
	{Name: "int", Group: "Numbers", What: "a whole number from text or from a number, which loses its fraction", least: 1, most: 1,
		Example: `int "80"`, Result: `80`, run: func(_ *machine, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "float64", Group: "Numbers", What: "a number from text or from a whole number", least: 1, most: 1,
		Example: `float64 "0.5"`, Result: `0.5`, run: func(_ *machine, args []any) (any, error) { return toFloat(args[0]) }},
	{Name: "int64", Group: "Numbers", What: "the same as int", least: 1, most: 1,
		Example: `int64 "80"`, Result: `80`, run: func(_ *machine, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "atoi", Group: "Numbers", What: "the same as int", least: 1, most: 1,
		Example: `atoi "80"`, Result: `80`, run: func(_ *machine, args []any) (any, error) { return toInt(args[0]) }},
	{Name: "add1", Group: "Numbers", What: "the whole number that follows", least: 1, most: 1,
		Example: `add1 CAPACITY`, Result: `6`, run: func(m *machine, args []any) (any, error) {
			n, err := intArg(args, 0)
			if err == nil && n == math.MaxInt64 {
				err = errOverflow
			}
			return n + 1, err
		}},
	{Name: "addf", Group: "Numbers", What: "the sum of numbers", least: 1, most: -1,
		Example: `addf 1.5 2`, Result: `3.5`, run: foldf(func(a, b float64) float64 { return a + b })},
	{Name: "subf", Group: "Numbers", What: "the first number less the others", least: 1, most: -1,
		Example: `subf 3 0.5`, Result: `2.5`, run: foldf(func(a, b float64) float64 { return a - b })},
	{Name: "mulf", Group: "Numbers", What: "the product of numbers", least: 1, most: -1,
		Example: `mulf 1.5 2`, Result: `3`, run: foldf(func(a, b float64) float64 { return a * b })},
	{Name: "divf", Group: "Numbers", What: "the first number divided by the others", least: 1, most: -1,
		Example: `divf 3 2`, Result: `1.5`, run: foldf(func(a, b float64) float64 { return a / b })},
	{Name: "maxf", Group: "Numbers", What: "the greatest number", least: 1, most: -1,
		Example: `maxf 1.5 2`, Result: `2`, run: foldf(math.Max)},
	{Name: "minf", Group: "Numbers", What: "the least number", least: 1, most: -1,
		Example: `minf 1.5 2`, Result: `1.5`, run: foldf(math.Min)},
	{Name: "floor", Group: "Numbers", What: "the whole number below, as a number; int makes it whole", least: 1, most: 1,
		Example: `floor 2.7`, Result: `2`, run: foldf(nil, math.Floor)},
	{Name: "ceil", Group: "Numbers", What: "the whole number above, as a number; int makes it whole", least: 1, most: 1,
		Example: `ceil 2.1 | int`, Result: `3`, run: foldf(nil, math.Ceil)},
	{Name: "round", Group: "Numbers", What: "the number rounded to N digits after the point", least: 2, most: 2,
		Example: `round 2.345 2`, Result: `2.35`, run: func(m *machine, args []any) (any, error) {
			digits, err := smallArg(args, 1)
			if err != nil {
				return nil, err
			}
			power := math.Pow10(min(max(digits, 0), 15))
			return foldf(nil, func(f float64) float64 { return math.Round(f*power) / power })(m, args[:1])
		}},
	{Name: "add", Group: "Numbers", What: "the sum of whole numbers", least: 1, most: -1,
		Example: `add 1 2 3`, Result: `6`, run: fold(func(a, b int64) (int64, error) {
			if sum := a + b; (sum > a) == (b > 0) {
				return sum, nil
			}
			return 0, errOverflow
		})},
	{Name: "sub", Group: "Numbers", What: "the first whole number less the second", least: 2, most: 2,
		Example: `sub CAPACITY 1`, Result: `4`, run: fold(func(a, b int64) (int64, error) {
			if difference := a - b; (difference < a) == (b > 0) {
				return difference, nil
			}
			return 0, errOverflow
		})},
	{Name: "mul", Group: "Numbers", What: "the product of whole numbers", least: 1, most: -1,
		Example: `mul CAPACITY 2`, Result: `10`, run: fold(multiply)},
	{Name: "div", Group: "Numbers", What: "the first whole number divided by the second, without the rest", least: 2, most: 2,
		Example: `div 7 2`, Result: `3`, run: fold(func(a, b int64) (int64, error) {
			switch {
			case b == 0:
				return 0, errors.New("division by zero")
			case a == math.MinInt64 && b == -1:
				return 0, errOverflow
			}
			return a / b, nil
		})},
	{Name: "mod", Group: "Numbers", What: "the rest of a division of whole numbers", least: 2, most: 2,
		Example: `mod 7 2`, Result: `1`, run: fold(func(a, b int64) (int64, error) {
			switch b {
			case 0:
				return 0, errors.New("division by zero")
			case -1:
				return 0, nil
			}
			return a % b, nil
		})},
	{Name: "max", Group: "Numbers", What: "the greatest whole number", least: 1, most: -1,
		Example: `max 1 3 2`, Result: `3`, run: fold(func(a, b int64) (int64, error) { return max(a, b), nil })},
	{Name: "min", Group: "Numbers", What: "the least whole number", least: 1, most: -1,
		Example: `min CAPACITY (len NODES)`, Result: `2`, run: fold(func(a, b int64) (int64, error) { return min(a, b), nil })},
}

var (
	errOverflow  = errors.New("the result does not fit into 64 bits")
	errNotFinite = errors.New("the number is not finite")
)

func multiply(a, b int64) (int64, error) {
	if a == 0 || b == 0 {
		return 0, nil
	}
	product := a * b
	if product/b != a || a == -1 && b == math.MinInt64 || b == -1 && a == math.MinInt64 {
		return 0, errOverflow
	}
	return product, nil
}

// fold computes over all arguments from left to right.
func fold(step func(a, b int64) (int64, error)) impl {
	return func(_ *machine, args []any) (any, error) {
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

// foldf computes over all arguments from left to right and applies after to the
// result. A result that is not finite is an error.
func foldf(step func(a, b float64) float64, after ...func(float64) float64) impl {
	return func(_ *machine, args []any) (any, error) {
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
			err = errNotFinite
		}
		return result, err
	}
}

// toInt is strict where sprig's int makes 0 of what it cannot read: a port 0
// that nobody wrote is worse than an error.
func toInt(value any) (any, error) {
	switch v := value.(type) {
	case int64:
		return v, nil
	case float64:
		if v >= -(1<<63) && v < 1<<63 {
			return int64(v), nil
		}
		return nil, errOverflow
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case string:
		if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
			return n, nil
		}
		return nil, hintf(`give it a default: {{ … | default "80" | int }}, if it can be empty`, "the text is not a whole number")
	}
	return nil, hintf("", "%s cannot become a whole number", kindName(value))
}

func toFloat(value any) (any, error) {
	switch v := value.(type) {
	case int64:
		return float64(v), nil
	case float64:
		return v, nil
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		if err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		return nil, hintf(`give it a default: {{ … | default "0.5" | float64 }}, if it can be empty`, "the text is not a number")
	}
	return nil, hintf("", "%s cannot become a number", kindName(value))
}
