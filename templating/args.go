package templating

import (
	"fmt"
)

// argumentError says that an argument of a function has the wrong type. It names
// types only, never values.
type argumentError struct {
	index int // from 0
	want  string
	got   string
}

func (e *argumentError) Error() string {
	return fmt.Sprintf("argument %d must be %s, not %s", e.index+1, e.want, e.got)
}

func wrongArgument(args []any, i int, want string) error {
	e := &argumentError{index: i, want: want, got: kindName(args[i])}
	_, isText := args[i].(string)
	switch {
	case want == "text" && isScalar(args[i]) && args[i] != nil:
		return &hinted{cause: e, hint: "turn it into text with toString"}
	case isText && (want == "a whole number" || want == "a number"):
		return &hinted{cause: e, hint: "device properties are text: turn it into a number with int or float64"}
	case args[i] == nil:
		return &hinted{cause: e, hint: `say what to use then: ( … | default "..." )`}
	}
	return e
}

func isScalar(value any) bool {
	switch value.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

func textArg(args []any, i int) (string, error) {
	if text, is := args[i].(string); is {
		return text, nil
	}
	return "", wrongArgument(args, i, "text")
}

func intArg(args []any, i int) (int64, error) {
	if n, is := args[i].(int64); is {
		return n, nil
	}
	return 0, wrongArgument(args, i, "a whole number")
}

// smallArg is a whole number that counts something in text or in a list.
func smallArg(args []any, i int) (int, error) {
	n, err := intArg(args, i)
	if err != nil {
		return 0, err
	}
	if n < -MaxObjectBytes || n > MaxObjectBytes {
		return 0, fmt.Errorf("argument %d is out of range", i+1)
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
	if list, is := args[i].([]any); is {
		return list, nil
	}
	return nil, wrongArgument(args, i, "a list")
}

func mapArg(args []any, i int) (map[string]any, error) {
	if m, is := asMap(args[i]); is {
		return m, nil
	}
	return nil, wrongArgument(args, i, "a map")
}

// The following make an impl of a plain function.

func text1(f func(string) string) impl {
	return func(m *machine, args []any) (any, error) {
		s, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(s), nil
	}
}

func text1e(f func(string) (any, error)) impl {
	return func(m *machine, args []any) (any, error) {
		s, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(s)
	}
}

func text2[R any](f func(a, b string) R) impl {
	return func(m *machine, args []any) (any, error) {
		a, err := textArg(args, 0)
		if err != nil {
			return nil, err
		}
		b, err := textArg(args, 1)
		if err != nil {
			return nil, err
		}
		return f(a, b), nil
	}
}

func count1text1(f func(n int, s string) any) impl {
	return func(m *machine, args []any) (any, error) {
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
	return func(m *machine, args []any) (any, error) {
		list, err := listArg(args, 0)
		if err != nil {
			return nil, err
		}
		return f(list)
	}
}
