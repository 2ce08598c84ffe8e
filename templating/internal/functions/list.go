package functions

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var listFunctions = []Function{
	{Name: "list", Group: "Lists", What: "a list of the arguments", min: 0, max: -1,
		Example: `list "a" 1`, Result: `["a",1]`,
		run: func(_ *budget.Budget, args []any) (any, error) { return append([]any{}, args...), nil }},
	{Name: "len", Group: "Lists", What: "the number of elements of a list or map, or of bytes of a string", min: 1, max: 1,
		Example: `len NODES`, Result: `2`,
		run: length},
	{Name: "index", Group: "Lists", What: "an element of a list by position, of a map by key; further arguments go deeper", min: 2, max: -1,
		Example: `index NODES 0`, Result: `"node-a"`,
		run: index},
	{Name: "slice", Group: "Lists", What: "the elements of a list, or bytes of a string, from position A up to B", min: 1, max: 3,
		Example: `slice NODES 1`, Result: `["node-b"]`,
		run: sliceOf},
	{Name: "first", Group: "Lists", What: "the first element", min: 1, max: 1,
		Example: `first NODES`, Result: `"node-a"`,
		run: list1(func(list []any) (any, error) { return elementAt(list, 0) })},
	{Name: "last", Group: "Lists", What: "the last element", min: 1, max: 1,
		Example: `last NODES`, Result: `"node-b"`,
		run: list1(func(list []any) (any, error) { return elementAt(list, int64(len(list))-1) })},
	{Name: "rest", Group: "Lists", What: "all but the first element", min: 1, max: 1,
		Example: `rest NODES`, Result: `["node-b"]`,
		run: list1(func(list []any) (any, error) { return list[min(1, len(list)):], nil })},
	{Name: "initial", Group: "Lists", What: "all but the last element", min: 1, max: 1,
		Example: `initial NODES`, Result: `["node-a"]`,
		run: list1(func(list []any) (any, error) { return list[:max(len(list)-1, 0)], nil })},
	{Name: "append", Group: "Lists", What: "the list with one more element at its end", min: 2, max: 2,
		Example: `append NODES "node-c"`, Result: `["node-a","node-b","node-c"]`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			list, err := listArg(args, 0)
			return slices.Concat(list, args[1:]), err
		}},
	{Name: "prepend", Group: "Lists", What: "the list with one more element at its beginning", min: 2, max: 2,
		Example: `prepend NODES "x"`, Result: `["x","node-a","node-b"]`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			list, err := listArg(args, 0)
			return slices.Concat(args[1:], list), err
		}},
	{Name: "concat", Group: "Lists", What: "one list with the elements of all lists", min: 1, max: -1,
		Example: `concat NODES (list 1)`, Result: `["node-a","node-b",1]`,
		run: concat},
	{Name: "reverse", Group: "Lists", What: "the elements in reverse order", min: 1, max: 1,
		Example: `reverse NODES`, Result: `["node-b","node-a"]`,
		run: list1(func(list []any) (any, error) {
			list = slices.Clone(list)
			slices.Reverse(list)
			return list, nil
		})},
	{Name: "uniq", Group: "Lists", What: "the list without repeated elements", min: 1, max: 1, slow: true,
		Example: `uniq (list 1 2 1)`, Result: `[1,2]`,
		run: func(b *budget.Budget, args []any) (any, error) { return filter(b, args, 0, distinct()) }},
	{Name: "compact", Group: "Lists", What: "the list without empty elements", min: 1, max: 1,
		Example: `compact (list 1 "" 0)`, Result: `[1]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			return filter(b, args, 0, func(element any) (bool, error) { return value.Truthy(element), nil })
		}},
	{Name: "without", Group: "Lists", What: "the list without the values that follow it", min: 2, max: -1,
		Example: `without NODES "node-a"`, Result: `["node-b"]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			return filter(b, args, len(args), func(element any) (bool, error) { return !containsScalar(args[1:], element), nil })
		}},
	{Name: "has", Group: "Lists", What: "whether the list contains the value", min: 2, max: 2,
		Example: `NODES | has "node-a"`, Result: `true`,
		run: has},
	{Name: "sortAlpha", Group: "Lists", What: "the elements as strings, sorted", min: 1, max: 1, deep: true,
		Example: `sortAlpha (list "b" "a" 1)`, Result: `["1","a","b"]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			texts, err := texts(b, args)
			if err != nil {
				return nil, err
			}
			slices.SortFunc(texts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			return texts, b.Step(int64(16 * len(texts)))
		}},
	{Name: "toStrings", Group: "Lists", What: "the elements as strings", min: 1, max: 1, deep: true,
		Example: `toStrings (list 1 true)`, Result: `["1","true"]`,
		run: func(b *budget.Budget, args []any) (any, error) { return texts(b, args) }},
	{Name: "chunk", Group: "Lists", What: "a list of lists of N elements each", min: 2, max: 2,
		Example: `chunk 2 (list 1 2 3)`, Result: `[[1,2],[3]]`,
		run: chunk},
	{Name: "join", Group: "Lists", What: "the elements of a list, joined with the first argument between them", min: 2, max: 2, deep: true,
		Example: `join "; " NODES`, Result: `"node-a; node-b"`,
		run: func(b *budget.Budget, args []any) (any, error) {
			separator, err := textArg(args, 0)
			if err != nil {
				return nil, err
			}
			list, err := listArg(args, 1)
			if err != nil {
				return nil, err
			}
			return join(b, list, separator)
		}},
	{Name: "splitList", Group: "Lists", What: "a list of the parts of a string", min: 2, max: 2,
		Example: `splitList "," "a,b"`, Result: `["a","b"]`,
		run: func(b *budget.Budget, args []any) (any, error) { return split(b, args, -1) }},
	{Name: "split", Group: "Lists", What: "a map of the parts of a string: _0, _1, …", min: 2, max: 2,
		Example: `(split ":" "10.0.0.5:554")._1`, Result: `"554"`,
		run: func(b *budget.Budget, args []any) (any, error) {
			parts, err := split(b, args, -1)
			return numbered(b, parts, err)
		}},
	{Name: "splitn", Group: "Lists", What: "as split, into at most N parts", min: 3, max: 3,
		Example: `splitn ":" 2 "a:b:c"`, Result: `{"_0":"a","_1":"b:c"}`,
		run: func(b *budget.Budget, args []any) (any, error) {
			n, err := smallArg(args, 1)
			if err != nil {
				return nil, err
			}
			if _, err := textArg(args, 2); err != nil {
				return nil, err
			}
			parts, err := split(b, []any{args[0], args[2]}, max(n, 1))
			return numbered(b, parts, err)
		}},
	{Name: "until", Group: "Lists", What: "the whole numbers from 0 up to N, without N; at most 1000", min: 1, max: 1,
		Example: `until 3`, Result: `[0,1,2]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			n, err := intArg(args, 0)
			if err != nil {
				return nil, err
			}
			return numbers(b, 0, n, 1)
		}},
	{Name: "untilStep", Group: "Lists", What: "the whole numbers from A up to B, without B, in steps of C; at most 1000", min: 3, max: 3,
		Example: `untilStep 2 8 3`, Result: `[2,5]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			var n [3]int64
			for i := range n {
				var err error
				if n[i], err = intArg(args, i); err != nil {
					return nil, err
				}
			}
			return numbers(b, n[0], n[1], n[2])
		}},
}

// split returns the parts of args[1] between occurrences of args[0], at most limit
// of them unless limit is negative.
func split(b *budget.Budget, args []any, limit int) ([]any, error) {
	separator, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	s, err := textArg(args, 1)
	if err != nil {
		return nil, err
	}
	parts := strings.Count(s, separator) + 1
	if separator == "" {
		parts = utf8.RuneCountInString(s)
	}
	if limit > 0 {
		parts = min(parts, limit)
	}
	if err := b.Allocate(2 * budget.ListBytes(parts)); err != nil {
		return nil, err
	}
	list := make([]any, 0, parts)
	for _, part := range strings.SplitN(s, separator, limit) {
		list = append(list, part)
	}
	return list, b.Step(int64(parts))
}

// numbered returns the parts as a map with the keys _0, _1, …
func numbered(b *budget.Budget, parts []any, err error) (any, error) {
	if err == nil {
		err = b.Allocate(budget.MapBytes(len(parts)) + 32*int64(len(parts)))
	}
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, len(parts))
	for i, part := range parts {
		fields["_"+strconv.Itoa(i)] = part
	}
	return fields, b.Step(4 * int64(len(parts)))
}

// numbers returns a list of whole numbers. It refuses one that is longer than a
// range may be before it allocates it.
func numbers(b *budget.Budget, from, to, step int64) (any, error) {
	if step == 0 {
		return nil, errors.New("the step is 0")
	}
	if (step > 0) != (from < to) {
		return []any{}, nil
	}
	distance, stride := uint64(to-from), uint64(step)
	if step < 0 {
		distance, stride = uint64(from-to), uint64(-step)
	}
	count := (distance-1)/stride + 1
	if count > budget.MaxRange {
		return nil, b.Exhaustf("", "numbers in a list are limited to %d", budget.MaxRange)
	}
	if err := b.Allocate(24 * int64(count)); err != nil {
		return nil, err
	}
	list := make([]any, count)
	for i := range list {
		list[i] = from + int64(i)*step
	}
	return list, b.Step(int64(count))
}

func length(_ *budget.Budget, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len(v)), nil
	case []any:
		return int64(len(v)), nil
	}
	if m, ok := value.AsMap(args[0]); ok {
		return int64(len(m)), nil
	}
	return nil, wrongArgument(args, 0, "a string, a list or a map")
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
			key, err := textArg(args, i)
			if err != nil {
				return nil, err
			}
			element, found := fields[key]
			if !found {
				written := ""
				if _, isProperties := v.(value.Properties); isProperties {
					written = "INSTANCE_PROPERTIES"
				}
				return nil, value.Missing(v, key, written)
			}
			v = element
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, fault.Hintf("characters are read with substr", "there are no elements in %s", value.KindName(v))
		}
		position, err := intArg(args, i)
		if err != nil {
			return nil, err
		}
		if v, err = elementAt(list, position); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func sliceOf(_ *budget.Budget, args []any) (any, error) {
	size, err := length(nil, args[:1])
	if _, isMap := value.AsMap(args[0]); isMap || err != nil {
		return nil, wrongArgument(args, 0, "a list or a string")
	}
	bounds := [2]int64{0, size.(int64)}
	for i := 1; i < len(args); i++ {
		if bounds[i-1], err = intArg(args, i); err != nil {
			return nil, err
		}
	}
	from, to := bounds[0], bounds[1]
	if from < 0 || to < from || to > size.(int64) {
		return nil, fault.Hintf("positions count from 0, and the second is not part of the result",
			"there is nothing from %d to %d: the length is %d", from, to, size)
	}
	if s, ok := args[0].(string); ok {
		return strings.ToValidUTF8(s[from:to], ""), nil
	}
	return args[0].([]any)[from:to:to], nil
}

func concat(b *budget.Budget, args []any) (any, error) {
	total := 0
	lists := make([][]any, len(args))
	for i := range args {
		list, err := listArg(args, i)
		if err != nil {
			return nil, err
		}
		lists[i], total = list, total+len(list)
	}
	if err := b.Allocate(budget.ListBytes(total)); err != nil {
		return nil, err
	}
	return slices.Concat(lists...), nil
}

func chunk(b *budget.Budget, args []any) (any, error) {
	n, err := smallArg(args, 0)
	if err != nil {
		return nil, err
	}
	list, err := listArg(args, 1)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, errors.New("argument 1 must be at least 1")
	}
	if err := b.Allocate(3 * budget.ListBytes(len(list)/n+1)); err != nil {
		return nil, err
	}
	chunks := make([]any, 0, len(list)/n+1)
	for part := range slices.Chunk(list, n) {
		chunks = append(chunks, part)
	}
	return chunks, nil
}

// filter returns the elements of the list args[0] for which keep returns true. Work
// is the number of steps that one call of keep takes.
func filter(b *budget.Budget, args []any, work int, keep func(any) (bool, error)) (any, error) {
	list, err := listArg(args, 0)
	if err != nil {
		return nil, err
	}
	if err := b.Step(int64(len(list) * (work + 1))); err != nil {
		return nil, err
	}
	if err := b.Allocate(4 * budget.ListBytes(len(list))); err != nil {
		return nil, err
	}
	kept := []any{}
	for _, element := range list {
		ok, err := keep(element)
		if err != nil {
			return nil, err
		}
		if ok {
			kept = append(kept, element)
		}
	}
	return kept, nil
}

// distinct returns a filter that is true for the first of equal elements.
func distinct() func(any) (bool, error) {
	seen := map[any]bool{}
	return func(element any) (bool, error) {
		if !value.IsScalar(element) {
			return false, fmt.Errorf("the list must contain strings, numbers, true or false, not %s", value.KindName(element))
		}
		repeated := seen[element]
		seen[element] = true
		return !repeated, nil
	}
}

func containsScalar(list []any, v any) bool {
	if !value.IsScalar(v) {
		return false
	}
	for _, element := range list {
		if value.IsScalar(element) && element == v {
			return true
		}
	}
	return false
}

func has(b *budget.Budget, args []any) (any, error) {
	list, err := listArg(args, 1)
	if err != nil {
		return nil, err
	}
	if !value.IsScalar(args[0]) {
		return nil, wrongArgument(args, 0, "a string, a number, true or false")
	}
	return containsScalar(list, args[0]), b.Step(int64(len(list)))
}

// texts formats each element of the list args[0] as text.
func texts(b *budget.Budget, args []any) ([]any, error) {
	list, err := listArg(args, 0)
	if err != nil {
		return nil, err
	}
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
