package functions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

// Function is an entry of the table.
type Function struct {
	Name  string
	Group string // heading under which it is documented
	What  string // what it returns, without the name
	// Example is an expression, without braces, and Result its value as JSON.
	Example, Result string

	min, max int // arguments; max < 0: any number
	run      impl
	// deep functions visit all of a list or map, not only its first level.
	deep bool
	// slow functions take some ten nanoseconds per byte of text, and as much
	// memory again.
	slow bool
}

// impl computes a function. It pays before it creates a value larger than its
// arguments.
type impl func(b *budget.Budget, args []any) (any, error)

// table is assembled from the groups, sorted by name.
var table = func() []Function {
	all := slices.Concat(choiceFunctions, textFunctions, caseFunctions, nameFunctions, numberFunctions, listFunctions,
		mapFunctions, encodingFunctions, regexFunctions, addressFunctions, versionFunctions)
	slices.SortFunc(all, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return all
}()

// Table returns all functions, sorted by name.
func Table() []Function { return slices.Clone(table) }

// Names returns the names of all functions, sorted.
func Names() []string {
	names := make([]string, len(table))
	for i, f := range table {
		names[i] = f.Name
	}
	return names
}

// Lookup returns the function of that name.
func Lookup(name string) (*Function, bool) {
	i, found := slices.BinarySearchFunc(table, name, func(f Function, name string) int {
		return strings.Compare(f.Name, name)
	})
	if !found {
		return nil, false
	}
	return &table[i], true
}

// CheckCount returns an error if the function does not take n arguments.
func (f *Function) CheckCount(n int) error {
	if n >= f.min && (f.max < 0 || n <= f.max) {
		return nil
	}
	return fault.Hintf("write it as in {{ "+f.Example+" }}", "%s takes %s, not %d", f.Name, f.arity(), n)
}

// arity describes how many arguments a function takes.
func (f *Function) arity() string {
	plural := func(n int) string {
		if n == 1 {
			return "1 argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case f.max < 0:
		return "at least " + plural(f.min)
	case f.min == f.max:
		return plural(f.min)
	}
	return fmt.Sprintf("%d to %s", f.min, plural(f.max))
}

// Call pays for the arguments, calls the function and pays for the result.
func (f *Function) Call(b *budget.Budget, args []any) (any, error) {
	for _, arg := range args {
		var err error
		if f.deep {
			err = b.Measure(arg)
		} else {
			err = f.pay(b, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	result, err := f.run(b, args)
	if err != nil {
		return nil, f.addName(err)
	}
	if s, ok := result.(string); ok && len(s) > budget.MaxObjectBytes {
		return nil, b.TooLarge()
	}
	return result, b.Allocate(shallowBytes(result))
}

func (f *Function) pay(b *budget.Budget, arg any) error {
	s, ok := arg.(string)
	if !ok || !f.slow {
		return b.Step(shallowSteps(arg))
	}
	if err := b.Step(2 + int64(len(s))); err != nil {
		return err
	}
	return b.Allocate(2 * int64(len(s)))
}

// addName prefixes an error with the function's name, unless the error reads better
// without it.
func (f *Function) addName(err error) error {
	found, isFault := errors.AsType[*fault.Fault](err)
	switch {
	case !isFault:
		return fmt.Errorf("%s: %w", f.Name, err)
	case errors.Is(found, errArgument):
		return fault.Hintf(found.Hint, "%s: %w", f.Name, found.Cause)
	}
	return err
}

// shallowSteps returns the work of visiting the first level of a value.
func shallowSteps(v any) int64 {
	switch v := v.(type) {
	case string:
		return 2 + int64(len(v))/64
	case []any:
		return 2 + int64(len(v))/8
	}
	m, _ := value.AsMap(v)
	return 2 + int64(len(m))/8
}

// shallowBytes returns the memory of the first level of a value.
func shallowBytes(v any) int64 {
	switch v := v.(type) {
	case string:
		return budget.StringHeader + int64(len(v))
	case []any:
		return budget.ListBytes(len(v))
	case nil, bool:
		return 0
	}
	if m, ok := value.AsMap(v); ok {
		return budget.MapBytes(len(m))
	}
	return 8
}
