package functions

import (
	"reflect"

	"github.com/Masterminds/sprig/v3"

	"akri.sh/akri/templating/internal/budget"
)

// sprigs are sprig's functions, of which those are called that the table has without a
// function of its own. They are functions of their arguments alone, which they do not change.
var sprigs = sprig.GenericFuncMap()

// reflectionSteps is the work of a call by reflection.
const reflectionSteps = 4

// plain returns a Go function, such as one of sprig, as a function of the table. Its entry must
// name kinds of arguments that are as narrow as what the function takes, because it would
// panic, or hide the mistake, given others.
func plain(function any) impl {
	if text, ok := function.(func(string) string); ok { // as most are, called without reflection
		return func(_ *budget.Budget, args []any) (any, error) { return text(args[0].(string)), nil }
	}
	f := reflect.ValueOf(function)
	t := f.Type()
	return func(b *budget.Budget, args []any) (any, error) {
		if err := b.Step(reflectionSteps); err != nil {
			return nil, err
		}
		in := make([]reflect.Value, len(args))
		for i, arg := range args {
			want := t.In(min(i, t.NumIn()-1))
			if t.IsVariadic() && i >= t.NumIn()-1 {
				want = want.Elem()
			}
			switch {
			case arg == nil:
				in[i] = reflect.Zero(want)
			case want.Kind() == reflect.Int:
				in[i] = reflect.ValueOf(int(arg.(int64)))
			default:
				in[i] = reflect.ValueOf(arg)
			}
		}
		return valueOf(f.Call(in)[0].Interface()), nil
	}
}

// valueOf returns what a Go function has returned as a value of the language.
func valueOf(result any) any {
	switch result := result.(type) {
	case []any:
		if result == nil {
			return []any{}
		}
	case []string:
		return listOf(result)
	case [][]any:
		return listOf(result)
	case map[string]string:
		fields := make(map[string]any, len(result))
		for key, text := range result {
			fields[key] = text
		}
		return fields
	}
	return result
}

func listOf[E any](elements []E) []any {
	list := make([]any, len(elements))
	for i, element := range elements {
		list[i] = element
	}
	return list
}
