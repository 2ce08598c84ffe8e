package functions

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var listFunctions = []Function{
	{Name: "list", What: "a list of the arguments", takes: "any*", Example: `list "a" 1`, Result: `["a",1]`},
	{Name: "len", What: "the number of elements of a list or map, or of bytes of a string", takes: "sized",
		Example: `len NODES`, Result: `2`, run: func(_ *budget.Budget, args []any) (any, error) { return sizeOf(args[0]), nil }},
	{Name: "index", What: "an element of a list by position, of a map by key; further arguments go deeper", takes: "any any+",
		Example: `index NODES 0`, Result: `"node-a"`, run: index},
	{Name: "slice", What: "the elements of a list, or bytes of a string, from position A up to B", takes: "sequence int? int?",
		Example: `slice NODES 1`, Result: `["node-b"]`, Unlike: "takes no strings, and fails beyond the end", run: sliceOf},
	{Name: "first", What: "the first element", takes: "list", Example: `first NODES`, Result: `"node-a"`, bound: notEmpty},
	{Name: "last", What: "the last element", takes: "list", Example: `last NODES`, Result: `"node-b"`, bound: notEmpty},
	{Name: "rest", What: "all but the first element", takes: "list", Example: `rest NODES`, Result: `["node-b"]`},
	{Name: "initial", What: "all but the last element", takes: "list", Example: `initial NODES`, Result: `["node-a"]`},
	{Name: "append", What: "the list with one more element at its end", takes: "list any", Unlike: "copies the list twice",
		Example: `append NODES "node-c"`, Result: `["node-a","node-b","node-c"]`,
		run: func(_ *budget.Budget, args []any) (any, error) { return slices.Concat(args[0].([]any), args[1:]), nil }},
	{Name: "prepend", What: "the list with one more element at its beginning", takes: "list any", Unlike: "copies the list twice",
		Example: `prepend NODES "x"`, Result: `["x","node-a","node-b"]`,
		run: func(_ *budget.Budget, args []any) (any, error) { return slices.Concat(args[1:], args[0].([]any)), nil }},
	{Name: "concat", What: "one list with the elements of all lists", takes: "list+", bound: payForElements(4),
		Example: `concat NODES (list 1)`, Result: `["node-a","node-b",1]`},
	{Name: "reverse", What: "the elements in reverse order", takes: "list", Example: `reverse NODES`, Result: `["node-b","node-a"]`},
	{Name: "uniq", What: "the list without repeated elements", takes: "list", slow: true, Unlike: "compares each element with all others",
		Example: `uniq (list 1 2 1)`, Result: `[1,2]`, run: unique},
	{Name: "compact", What: "the list without empty elements", takes: "list", bound: payForElements(4),
		Example: `compact (list 1 "" 0)`, Result: `[1]`},
	{Name: "without", What: "the list without the values that follow it", takes: "list any+",
		Example: `without NODES "node-a"`, Result: `["node-b"]`,
		bound: func(b *budget.Budget, args []any) error {
			for range args { // each value is compared with all that is in the list
				if err := b.Measure(args[0]); err != nil {
					return err
				}
			}
			return payForElements(4)(b, args[:1])
		}},
	{Name: "has", What: "whether the list contains the value", takes: "scalar list",
		Example: `NODES | has "node-a"`, Result: `true`,
		bound: func(b *budget.Budget, args []any) error { return b.Measure(args[1]) }},
	{Name: "sortAlpha", What: "the elements as strings, sorted", takes: "list", deep: true, Unlike: asGo,
		Example: `sortAlpha (list "b" "a" 1)`, Result: `["1","a","b"]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			texts, err := texts(b, args[0].([]any))
			if err != nil {
				return nil, err
			}
			slices.SortFunc(texts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			return texts, b.Step(int64(16 * len(texts)))
		}},
	{Name: "toStrings", What: "the elements as strings", takes: "list", deep: true, Unlike: asGo,
		Example: `toStrings (list 1 true)`, Result: `["1","true"]`,
		run: func(b *budget.Budget, args []any) (any, error) { return texts(b, args[0].([]any)) }},
	{Name: "chunk", What: "a list of lists of N elements each", takes: "count list", Example: `chunk 2 (list 1 2 3)`, Result: `[[1,2],[3]]`,
		bound: func(b *budget.Budget, args []any) error {
			n, size := args[0].(int64), int64(len(args[1].([]any)))
			if n < 1 {
				return errors.New("argument 1 must be at least 1")
			}
			return b.Allocate(16*size + 4*budget.ListBytes(int(size/n+1)))
		}},
	{Name: "join", What: "the elements of a list, joined with the first argument between them", takes: "string list", deep: true,
		Example: `join "; " NODES`, Result: `"node-a; node-b"`, Unlike: asGo,
		run: func(b *budget.Budget, args []any) (any, error) { return join(b, args[1].([]any), args[0].(string)) }},
	{Name: "splitList", What: "a list of the parts of a string", takes: "string string", Example: `splitList "," "a,b"`, Result: `["a","b"]`,
		bound: func(b *budget.Budget, args []any) error {
			parts := countParts(args[0], args[1])
			return b.Pay(int64(parts), 2*budget.ListBytes(parts))
		}},
	{Name: "split", What: "a map of the parts of a string: _0, _1, …", takes: "string string",
		Example: `(split ":" "10.0.0.5:554")._1`, Result: `"554"`,
		bound: func(b *budget.Budget, args []any) error { return payForNumbered(b, countParts(args[0], args[1])) }},
	{Name: "splitn", What: "as split, into at most N parts", takes: "string count string",
		Example: `splitn ":" 2 "a:b:c"`, Result: `{"_0":"a","_1":"b:c"}`,
		bound: func(b *budget.Budget, args []any) error {
			parts := countParts(args[0], args[2])
			if n := int(args[1].(int64)); n >= 0 {
				parts = min(parts, n)
			}
			return payForNumbered(b, parts)
		}},
	{Name: "until", What: "the whole numbers from 0 up to N, without N; at most 1000", takes: "int",
		Example: `until 3`, Result: `[0,1,2]`, Unlike: "has no limit, and counts down to a negative N",
		run: func(b *budget.Budget, args []any) (any, error) { return numbers(b, 0, args[0].(int64), 1) }},
	{Name: "untilStep", What: "the whole numbers from A up to B, without B, in steps of C; at most 1000", takes: "int int int",
		Example: `untilStep 2 8 3`, Result: `[2,5]`, Unlike: "has no limit",
		run: func(b *budget.Budget, args []any) (any, error) {
			return numbers(b, args[0].(int64), args[1].(int64), args[2].(int64))
		}},
}

// payForElements returns a bound that pays for comparing the elements of all lists among the
// arguments with the others, and for copies of them.
func payForElements(copies int64) func(*budget.Budget, []any) error {
	return func(b *budget.Budget, args []any) error {
		elements := 0
		for _, arg := range args {
			list, _ := arg.([]any)
			elements += len(list)
		}
		return b.Pay(int64(elements*len(args)), copies*budget.ListBytes(elements))
	}
}

// countParts returns how many parts of a string are between separators.
func countParts(separator, s any) int {
	if separator == "" {
		return utf8.RuneCountInString(s.(string))
	}
	return strings.Count(s.(string), separator.(string)) + 1
}

// payForNumbered pays for a map of parts, and the one of strings that sprig makes of them.
func payForNumbered(b *budget.Budget, parts int) error {
	return b.Pay(8*int64(parts), 2*budget.MapBytes(parts)+64*int64(parts))
}

// numbers returns a list of whole numbers, if it is not longer than a range may be.
func numbers(b *budget.Budget, from, to, step int64) (any, error) {
	if step == 0 {
		return nil, errors.New("the step is 0")
	}
	list := []any{}
	for n := from; n != to && (n < to) == (step > 0); n += step {
		if len(list) == budget.MaxRange {
			return nil, b.Exhaustf("", "numbers in a list are limited to %d", budget.MaxRange)
		}
		if err := b.Pay(1, 48); err != nil {
			return nil, err
		}
		list = append(list, n)
		if (n+step > n) != (step > 0) {
			break // the next does not fit into 64 bits
		}
	}
	return list, nil
}

func sizeOf(v any) int64 {
	text, _ := v.(string)
	list, _ := v.([]any)
	fields, _ := value.AsMap(v)
	return int64(len(text) + len(list) + len(fields))
}

// notEmpty refuses a list without elements, for which sprig's functions give nothing.
func notEmpty(_ *budget.Budget, args []any) error {
	_, err := elementAt(args[0].([]any), 0)
	return err
}

func elementAt(list []any, i int64) (any, error) {
	if i >= 0 && i < int64(len(list)) {
		return list[i], nil
	}
	if len(list) == 0 {
		return nil, fault.Hintf("check it first: {{ if LIST }} … {{ end }}", "the list is empty")
	}
	return nil, fault.Hintf("positions count from 0", "the list has %d elements: there is no position %d", len(list), i)
}

func index(_ *budget.Budget, args []any) (any, error) {
	v := args[0]
	for i := 1; i < len(args); i++ {
		if fields, ok := value.AsMap(v); ok {
			if err := check(args, i, "string"); err != nil {
				return nil, err
			}
			key := args[i].(string)
			element, found := fields[key]
			if !found {
				return nil, value.Missing(v, key, "")
			}
			v = element
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, fault.Hintf("characters are read with substr", "there are no elements in %s", value.KindName(v))
		}
		err := check(args, i, "int")
		if err == nil {
			v, err = elementAt(list, args[i].(int64))
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func sliceOf(_ *budget.Budget, args []any) (any, error) {
	size := sizeOf(args[0])
	bounds := []int64{0, size}
	for i, bound := range args[1:] {
		bounds[i] = bound.(int64)
	}
	from, to := bounds[0], bounds[1]
	if from < 0 || to < from || to > size {
		return nil, fault.Hintf("positions count from 0, and the second is not part of the result",
			"there is nothing from %d to %d: the length is %d", from, to, size)
	}
	if s, ok := args[0].(string); ok {
		return strings.ToValidUTF8(s[from:to], ""), nil
	}
	return args[0].([]any)[from:to:to], nil
}

// unique returns the list args[0] without repeated elements.
func unique(b *budget.Budget, args []any) (any, error) {
	list := args[0].([]any)
	if err := b.Measure(list); err != nil { // each element is hashed
		return nil, err
	}
	if err := b.Allocate(4 * budget.ListBytes(len(list))); err != nil {
		return nil, err
	}
	seen, kept := map[any]bool{}, []any{}
	for _, element := range list {
		if !value.IsScalar(element) {
			return nil, fmt.Errorf("the list must contain strings, numbers, true or false, not %s", value.KindName(element))
		}
		if !seen[element] {
			kept = append(kept, element)
		}
		seen[element] = true
	}
	return kept, nil
}

// texts formats each element of a list as text.
func texts(b *budget.Budget, list []any) ([]any, error) {
	if err := b.Allocate(2 * budget.ListBytes(len(list))); err != nil {
		return nil, err
	}
	texts := make([]any, len(list))
	for i, element := range list {
		formatted, err := Text(b, element)
		if err != nil {
			return nil, err
		}
		texts[i] = formatted
	}
	return texts, nil
}
