package functions

import (
	"errors"
	"fmt"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// errArgument is the cause if an argument has the wrong type.
var errArgument = errors.New("argument")

// wrongArgument names types only, never values.
func wrongArgument(args []any, i int, want string) error {
	hint := ""
	_, isText := args[i].(string)
	switch {
	case want == "a string" && value.IsScalar(args[i]) && args[i] != nil:
		hint = "turn it into a string with toString"
	case isText && (want == "a whole number" || want == "a number"):
		hint = "device properties are strings: turn it into a number with int or float64"
	case args[i] == nil:
		hint = `provide a default: ( … | default "..." )`
	}
	return fault.Hintf(hint, "%w %d must be %s, not %s", errArgument, i+1, want, value.KindName(args[i]))
}

func textArg(args []any, i int) (string, error) {
	if s, ok := args[i].(string); ok {
		return s, nil
	}
	return "", wrongArgument(args, i, "a string")
}

func intArg(args []any, i int) (int64, error) {
	if n, ok := args[i].(int64); ok {
		return n, nil
	}
	return 0, wrongArgument(args, i, "a whole number")
}

// smallArg returns a whole number that counts something in a text or a list.
func smallArg(args []any, i int) (int, error) {
	n, err := intArg(args, i)
	if err != nil {
		return 0, err
	}
	if n < -budget.MaxObjectBytes || n > budget.MaxObjectBytes {
		return 0, fmt.Errorf("argument %d must be between %d and %d", i+1, -budget.MaxObjectBytes, budget.MaxObjectBytes)
	}
	return int(n), nil
}

func numberArg(args []any, i int) (float64, error) {
	switch n := args[i].(type) {
	case int64:
		return float64(n), nil
	case float64:
		return n, nil
	}
	return 0, wrongArgument(args, i, "a number")
}

func listArg(args []any, i int) ([]any, error) {
	if list, ok := args[i].([]any); ok {
		return list, nil
	}
	return nil, wrongArgument(args, i, "a list")
}

func mapArg(args []any, i int) (map[string]any, error) {
	if m, ok := value.AsMap(args[i]); ok {
		return m, nil
	}
	return nil, wrongArgument(args, i, "a map")
}

// The adapters below turn a plain Go function into an impl.

func text1(f func(string) string) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		s, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func text1e(f func(string) (any, error)) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		s, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(s)
	}
}

func text2[R any](f func(a, b string) R) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		first, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		second, err := textArg(args, 1)
		if err != nil {
			return nil, err
		}
		return f(first, second), nil
	}
}

func count1text1(f func(n int, s string) any) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		n, err := smallArg(args, 0)
		if err != nil {
			return nil, err
		}
		s, err := textArg(args, 1)
		if err != nil {
			return nil, err
		}
		return f(n, s), nil
	}
}

func list1(f func([]any) (any, error)) impl {
	return func(_ *budget.Budget, args []any) (any, error) {
		list, err := listArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(list)
	}
}
