package functions

import (
	"errors"
	"fmt"
	"maps"
	"slices"

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
	// Unlike says how sprig's function of that name differs, for which reason it is not called.
	Unlike string
	// Sprig is set if sprig's function of that name is called.
	Sprig bool

	// takes names the kinds of the arguments: see kinds and parametersOf.
	takes      string
	parameters parameters
	// bound refuses or pays for a call of sprig's function whose cost is more than that of its
	// arguments and its result.
	bound func(b *budget.Budget, args []any) error
	// run is Akri's own function; nil in an entry for sprig's.
	run impl
	// deep functions visit all of a list or map, not only its first level.
	deep bool
	// slow functions take some ten nanoseconds per byte of text, and as much
	// memory again.
	slow bool
}

// impl computes a function. Its arguments have the kinds that the entry names. It pays before
// it creates a value larger than its arguments.
type impl func(b *budget.Budget, args []any) (any, error)

// groups are the functions by the headings under which they are documented.
var groups = map[string][]Function{
	"Choosing": choiceFunctions, "Strings": textFunctions, "Names": nameFunctions, "Numbers": numberFunctions, "Lists": listFunctions,
	"Maps": mapFunctions, "Encoding": encodingFunctions, "Regular expressions": regexFunctions,
	"Addresses and paths": addressFunctions, "Versions": versionFunctions,
}

// table has all functions by name.
var table = func() map[string]*Function {
	all := map[string]*Function{}
	for group, functions := range groups {
		for _, f := range functions {
			f.Group, f.parameters = group, parametersOf(f.takes)
			if f.run == nil {
				f.Sprig, f.run = true, plain(sprigs[f.Name])
			}
			if all[f.Name] != nil { // a programming error: every test fails
				panic(f.Name + " is in the table twice")
			}
			all[f.Name] = &f
		}
	}
	return all
}()

var names = slices.Sorted(maps.Keys(table))

// Names returns the names of all functions, sorted.
func Names() []string { return slices.Clone(names) }

// Lookup returns the function of that name.
func Lookup(name string) (*Function, bool) {
	f, found := table[name]
	return f, found
}

// CheckCount returns an error if the function does not take n arguments.
func (f *Function) CheckCount(n int) error {
	if p := f.parameters; n >= p.min && n <= p.max {
		return nil
	}
	return fault.Hintf("write it as in {{ "+f.Example+" }}", "%s takes %s, not %d", f.Name, f.parameters.count(), n)
}

// Call pays for the arguments, checks them, calls the function and pays for the result.
func (f *Function) Call(b *budget.Budget, args []any) (any, error) {
	for _, arg := range args {
		if err := f.pay(b, arg); err != nil {
			return nil, err
		}
	}
	err := f.parameters.check(args)
	if err == nil && f.bound != nil {
		err = f.bound(b, args)
	}
	var result any
	if err == nil {
		result, err = f.run(b, args)
	}
	if err != nil {
		return nil, f.addName(err)
	}
	if s, ok := result.(string); ok && len(s) > budget.MaxObjectBytes {
		return nil, b.TooLarge()
	}
	return result, b.Allocate(shallowBytes(result))
}

func (f *Function) pay(b *budget.Budget, arg any) error {
	if f.deep {
		return b.Measure(arg)
	}
	s, ok := arg.(string)
	if !ok || !f.slow {
		return b.Step(shallowSteps(arg))
	}
	return b.Pay(2+int64(len(s)), 2*int64(len(s)))
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
	text, _ := v.(string)
	list, _ := v.([]any)
	fields, _ := value.AsMap(v)
	return int64(2 + len(text)/64 + len(list)/8 + len(fields)/8)
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
