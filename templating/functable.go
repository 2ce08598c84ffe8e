package templating

import (
	"fmt"
	"slices"
	"strings"
)

// Function is one entry of the table of functions: all that a template can call.
// Documentation and tests are made from the same entries.
type Function struct {
	Name  string
	Group string // heading under which it is documented
	What  string // what it does, without the name
	// Example is an expression, without braces, and Result what it yields, as
	// JSON.
	Example, Result string

	least, most int // arguments; most < 0: any number
	run         impl
	// deep functions visit all of a list or map, not only its first level.
	deep bool
	// slow functions take some ten nanoseconds per byte of text, and as much
	// memory again.
	slow bool
}

// impl computes a function. It neither keeps args nor changes what is in them,
// and it asks m's budget before it makes something larger than its arguments.
type impl func(m *machine, args []any) (any, error)

// Functions is the table, sorted by name.
func Functions() []Function { return slices.Clone(functions) }

// functions is put together from the funcs_*.go files, sorted by name.
var functions = func() []Function {
	all := slices.Concat(choiceFunctions, textFunctions, caseFunctions, nameFunctions, numberFunctions, listFunctions,
		mapFunctions, encodingFunctions, regexFunctions, addressFunctions, versionFunctions)
	slices.SortFunc(all, func(a, b Function) int { return strings.Compare(a.Name, b.Name) })
	return all
}()

func functionNamed(name string) (*Function, bool) {
	i, found := slices.BinarySearchFunc(functions, name, func(f Function, name string) int {
		return strings.Compare(f.Name, name)
	})
	if !found {
		return nil, false
	}
	return &functions[i], true
}

// arity says in words how many arguments a function takes.
func (f *Function) arity() string {
	plural := func(n int) string {
		if n == 1 {
			return "1 argument"
		}
		return fmt.Sprintf("%d arguments", n)
	}
	switch {
	case f.most < 0:
		return "at least " + plural(f.least)
	case f.most == 0:
		return "no arguments"
	case f.least == f.most:
		return plural(f.least)
	}
	return fmt.Sprintf("%d to %s", f.least, plural(f.most))
}

// call pays for the arguments, computes, and pays for the result.
func (f *Function) call(m *machine, args []any) (any, error) {
	for _, arg := range args {
		var err error
		if f.deep {
			err = m.budget.measure(arg, 0)
		} else {
			err = f.pay(m.budget, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	value, err := f.run(m, args)
	if err != nil {
		return nil, f.named(err)
	}
	if text, isText := value.(string); isText && len(text) > MaxObjectBytes {
		return nil, m.budget.output(MaxObjectBytes + 1)
	}
	return value, m.budget.allocate(shallowBytes(value))
}

func (f *Function) pay(b *budget, arg any) error {
	text, isText := arg.(string)
	if !isText || !f.slow {
		return b.step(shallowCost(arg))
	}
	if err := b.step(2 + int64(len(text))); err != nil {
		return err
	}
	return b.allocate(2 * int64(len(text)))
}

// named puts the function's name before an error, unless that is told better
// without.
func (f *Function) named(err error) error {
	switch e := err.(type) {
	case *LimitError:
		return err
	case *hinted:
		if _, plain := e.cause.(*argumentError); plain {
			return &hinted{cause: fmt.Errorf("%s: %w", f.Name, e.cause), hint: e.hint}
		}
		return err
	}
	return fmt.Errorf("%s: %w", f.Name, err)
}

func shallowCost(value any) int64 {
	switch v := value.(type) {
	case string:
		return 2 + int64(len(v))/64
	case []any:
		return 2 + int64(len(v))/8
	}
	m, _ := asMap(value)
	return 2 + int64(len(m))/8
}

func shallowBytes(value any) int64 {
	switch v := value.(type) {
	case string:
		return stringHeader + int64(len(v))
	case []any:
		return listBytes(len(v))
	case nil, bool:
		return 0
	}
	if m, isMap := asMap(value); isMap {
		return mapBytes(len(m))
	}
	return 8
}
