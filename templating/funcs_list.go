package templating

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var listFunctions = []Function{
	{Name: "list", Group: "Lists", What: "a list of the arguments", least: 0, most: -1,
		Example: `list "a" 1`, Result: `["a",1]`, run: func(_ *machine, args []any) (any, error) { return append([]any{}, args...), nil }},
	{Name: "len", Group: "Lists", What: "the number of elements of a list or map, or of bytes of text", least: 1, most: 1,
		Example: `len NODES`, Result: `2`, run: length},
	{Name: "index", Group: "Lists", What: "an element of a list by position, of a map by key; further arguments go deeper", least: 2, most: -1,
		Example: `index NODES 0`, Result: `"node-a"`, run: index},
	{Name: "slice", Group: "Lists", What: "the elements of a list, or bytes of text, from position A up to B", least: 1, most: 3,
		Example: `slice NODES 1`, Result: `["node-b"]`, run: sliceOf},
	{Name: "first", Group: "Lists", What: "the first element", least: 1, most: 1,
		Example: `first NODES`, Result: `"node-a"`, run: list1(func(list []any) (any, error) { return elementAt(list, 0) })},
	{Name: "last", Group: "Lists", What: "the last element", least: 1, most: 1,
		Example: `last NODES`, Result: `"node-b"`, run: list1(func(list []any) (any, error) { return elementAt(list, int64(len(list))-1) })},
	{Name: "rest", Group: "Lists", What: "all but the first element", least: 1, most: 1,
		Example: `rest NODES`, Result: `["node-b"]`, run: list1(func(list []any) (any, error) { return list[min(1, len(list)):], nil })},
	{Name: "initial", Group: "Lists", What: "all but the last element", least: 1, most: 1,
		Example: `initial NODES`, Result: `["node-a"]`, run: list1(func(list []any) (any, error) { return list[:max(len(list)-1, 0)], nil })},
	{Name: "append", Group: "Lists", What: "the list with one element more at its end", least: 2, most: 2,
		Example: `append NODES "node-c"`, Result: `["node-a","node-b","node-c"]`, run: func(_ *machine, args []any) (any, error) {
			list, err := listArg(args, 0)
			return slices.Concat(list, args[1:]), err
		}},
	{Name: "prepend", Group: "Lists", What: "the list with one element more at its beginning", least: 2, most: 2,
		Example: `prepend NODES "x"`, Result: `["x","node-a","node-b"]`, run: func(_ *machine, args []any) (any, error) {
			list, err := listArg(args, 0)
			return slices.Concat(args[1:], list), err
		}},
	{Name: "concat", Group: "Lists", What: "one list of the elements of all", least: 1, most: -1,
		Example: `concat NODES (list 1)`, Result: `["node-a","node-b",1]`, run: concat},
	{Name: "reverse", Group: "Lists", What: "the elements in reverse order", least: 1, most: 1,
		Example: `reverse NODES`, Result: `["node-b","node-a"]`, run: list1(func(list []any) (any, error) {
			list = slices.Clone(list)
			slices.Reverse(list)
			return list, nil
		})},
	{Name: "uniq", Group: "Lists", What: "without repetition", least: 1, most: 1, slow: true,
		Example: `uniq (list 1 2 1)`, Result: `[1,2]`, run: func(m *machine, args []any) (any, error) { return selected(m, args, 0, distinct()) }},
	{Name: "compact", Group: "Lists", What: "without empty elements", least: 1, most: 1,
		Example: `compact (list 1 "" 0)`, Result: `[1]`, run: func(m *machine, args []any) (any, error) {
			return selected(m, args, 0, func(element any) (bool, error) { return truthy(element), nil })
		}},
	{Name: "without", Group: "Lists", What: "the list without the values that follow it", least: 2, most: -1,
		Example: `without NODES "node-a"`, Result: `["node-b"]`, run: func(m *machine, args []any) (any, error) {
			return selected(m, args, len(args), func(element any) (bool, error) { return !containsScalar(args[1:], element), nil })
		}},
	{Name: "has", Group: "Lists", What: "whether the list holds the value", least: 2, most: 2,
		Example: `NODES | has "node-a"`, Result: `true`, run: has},
	{Name: "sortAlpha", Group: "Lists", What: "the elements as text, sorted", least: 1, most: 1, deep: true,
		Example: `sortAlpha (list "b" "a" 1)`, Result: `["1","a","b"]`, run: func(m *machine, args []any) (any, error) {
			texts, err := m.texts(args)
			if err != nil {
				return nil, err
			}
			slices.SortFunc(texts, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			return texts, m.budget.step(int64(16 * len(texts)))
		}},
	{Name: "toStrings", Group: "Lists", What: "the elements as text", least: 1, most: 1, deep: true,
		Example: `toStrings (list 1 true)`, Result: `["1","true"]`, run: func(m *machine, args []any) (any, error) { return m.texts(args) }},
	{Name: "chunk", Group: "Lists", What: "a list of lists of N elements each", least: 2, most: 2,
		Example: `chunk 2 (list 1 2 3)`, Result: `[[1,2],[3]]`, run: chunk},
	{Name: "join", Group: "Lists", What: "the elements of a list as text with the first argument between them", least: 2, most: 2, deep: true,
		Example: `join "; " NODES`, Result: `"node-a; node-b"`, run: func(m *machine, args []any) (any, error) {
			separator, err := textArg(args, 0)
			if err != nil {
				return nil, err
			}
			list, err := listArg(args, 1)
			if err != nil {
				return nil, err
			}
			return m.joinList(list, separator)
		}},
	{Name: "splitList", Group: "Lists", What: "a list of the parts of a text", least: 2, most: 2,
		Example: `splitList "," "a,b"`, Result: `["a","b"]`, run: func(m *machine, args []any) (any, error) { return split(m, args, -1) }},
	{Name: "split", Group: "Lists", What: "a map of the parts of a text: _0, _1, …", least: 2, most: 2,
		Example: `(split ":" "10.0.0.5:554")._1`, Result: `"554"`, run: func(m *machine, args []any) (any, error) {
			parts, err := split(m, args, -1)
			return numbered(m, parts, err)
		}},
	{Name: "splitn", Group: "Lists", What: "as split, into at most N parts", least: 3, most: 3,
		Example: `splitn ":" 2 "a:b:c"`, Result: `{"_0":"a","_1":"b:c"}`, run: func(m *machine, args []any) (any, error) {
			n, err := smallArg(args, 1)
			if err != nil {
				return nil, err
			}
			parts, err := split(m, []any{args[0], args[2]}, max(n, 1))
			return numbered(m, parts, err)
		}},
	{Name: "until", Group: "Lists", What: "the whole numbers from 0 up to N, without N; at most 1000", least: 1, most: 1,
		Example: `until 3`, Result: `[0,1,2]`, run: func(m *machine, args []any) (any, error) {
			n, err := intArg(args, 0)
			if err != nil {
				return nil, err
			}
			return m.numbers(0, n, 1)
		}},
	{Name: "untilStep", Group: "Lists", What: "the whole numbers from A up to B, without B, in steps of C; at most 1000", least: 3, most: 3,
		Example: `untilStep 2 8 3`, Result: `[2,5]`, run: func(m *machine, args []any) (any, error) {
			var n [3]int64
			for i := range n {
				var err error
				if n[i], err = intArg(args, i); err != nil {
					return nil, err
				}
			}
			return m.numbers(n[0], n[1], n[2])
		}},
}

// split is the parts of args[1] between occurrences of args[0].
func split(m *machine, args []any, most int) ([]any, error) {
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
	if most > 0 {
		parts = min(parts, most)
	}
	if err := m.budget.allocate(2 * listBytes(parts)); err != nil {
		return nil, err
	}
	list := make([]any, 0, parts)
	for _, part := range strings.SplitN(s, separator, most) {
		list = append(list, part)
	}
	return list, m.budget.step(int64(parts))
}

func numbered(m *machine, parts []any, err error) (any, error) {
	if err == nil {
		err = m.budget.allocate(mapBytes(len(parts)) + 32*int64(len(parts)))
	}
	if err != nil {
		return nil, err
	}
	fields := make(map[string]any, len(parts))
	for i, part := range parts {
		fields["_"+strconv.Itoa(i)] = part
	}
	return fields, m.budget.step(4 * int64(len(parts)))
}

// numbers lists whole numbers; a list longer than a range may be is refused
// before it is made.
func (m *machine) numbers(from, to, step int64) (any, error) {
	if step == 0 {
		return nil, fmt.Errorf("the step is 0")
	}
	if (step > 0) != (from < to) {
		return []any{}, nil
	}
	distance, stride := uint64(to-from), uint64(step)
	if step < 0 {
		distance, stride = uint64(from-to), uint64(-step)
	}
	count := (distance-1)/stride + 1
	if count > MaxRange {
		return nil, m.budget.exhaust(&LimitError{What: "numbers in a list", Limit: MaxRange})
	}
	if err := m.budget.allocate(24 * int64(count)); err != nil {
		return nil, err
	}
	list := make([]any, count)
	for i := range list {
		list[i] = from + int64(i)*step
	}
	return list, m.budget.step(int64(count))
}

func length(_ *machine, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return int64(len(v)), nil
	case []any:
		return int64(len(v)), nil
	}
	if m, isMap := asMap(args[0]); isMap {
		return int64(len(m)), nil
	}
	return nil, wrongArgument(args, 0, "text, a list or a map")
}

func elementAt(list []any, i int64) (any, error) {
	if i >= 0 && i < int64(len(list)) {
		return list[i], nil
	}
	if len(list) == 0 {
		return nil, hintf("ask before: {{ if LIST }} … {{ end }}", "the list is empty")
	}
	return nil, hintf("positions count from 0", "the list has %d elements, there is no position %d", len(list), i)
}

func index(_ *machine, args []any) (any, error) {
	value := args[0]
	for i := 1; i < len(args); i++ {
		if fields, isMap := asMap(value); isMap {
			key, err := textArg(args, i)
			if err != nil {
				return nil, err
			}
			element, found := fields[key]
			if !found {
				written := ""
				if _, isProperties := value.(propertyMap); isProperties {
					written = "INSTANCE_PROPERTIES"
				}
				return nil, missing(value, key, written)
			}
			value = element
			continue
		}
		list, isList := value.([]any)
		if !isList {
			return nil, hintf("characters are read with substr", "there are no elements in %s", kindName(value))
		}
		position, err := intArg(args, i)
		if err != nil {
			return nil, err
		}
		if value, err = elementAt(list, position); err != nil {
			return nil, err
		}
	}
	return value, nil
}

func sliceOf(_ *machine, args []any) (any, error) {
	size, err := length(nil, args[:1])
	if _, isMap := asMap(args[0]); isMap || err != nil {
		return nil, wrongArgument(args, 0, "a list or text")
	}
	bounds := [2]int64{0, size.(int64)}
	for i := 1; i < len(args); i++ {
		if bounds[i-1], err = intArg(args, i); err != nil {
			return nil, err
		}
	}
	from, to := bounds[0], bounds[1]
	if from < 0 || to < from || to > size.(int64) {
		return nil, hintf("positions count from 0, and the second is not part of the result", "there is nothing from %d to %d, the length is %d", from, to, size)
	}
	if s, isText := args[0].(string); isText {
		return strings.ToValidUTF8(s[from:to], ""), nil
	}
	return args[0].([]any)[from:to:to], nil
}

func concat(m *machine, args []any) (any, error) {
	total := 0
	lists := make([][]any, len(args))
	for i := range args {
		list, err := listArg(args, i)
		if err != nil {
			return nil, err
		}
		lists[i], total = list, total+len(list)
	}
	if err := m.budget.allocate(listBytes(total)); err != nil {
		return nil, err
	}
	return slices.Concat(lists...), nil
}

func chunk(m *machine, args []any) (any, error) {
	n, err := smallArg(args, 0)
	if err != nil {
		return nil, err
	}
	list, err := listArg(args, 1)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, fmt.Errorf("argument 1 must be at least 1")
	}
	if err := m.budget.allocate(3 * listBytes(len(list)/n+1)); err != nil {
		return nil, err
	}
	chunks := make([]any, 0, len(list)/n+1)
	for part := range slices.Chunk(list, n) {
		chunks = append(chunks, part)
	}
	return chunks, nil
}

// selected is the elements of the list args[0] that keep wants; work is what one
// question costs.
func selected(m *machine, args []any, work int, keep func(any) (bool, error)) (any, error) {
	list, err := listArg(args, 0)
	if err != nil {
		return nil, err
	}
	if err := m.budget.step(int64(len(list) * (work + 1))); err != nil {
		return nil, err
	}
	if err := m.budget.allocate(4 * listBytes(len(list))); err != nil {
		return nil, err
	}
	kept := []any{}
	for _, element := range list {
		wanted, err := keep(element)
		if err != nil {
			return nil, err
		}
		if wanted {
			kept = append(kept, element)
		}
	}
	return kept, nil
}

func distinct() func(any) (bool, error) {
	seen := map[any]bool{}
	return func(element any) (bool, error) {
		if !isScalar(element) {
			return false, fmt.Errorf("the list must hold text, numbers, true or false, not %s", kindName(element))
		}
		again := seen[element]
		seen[element] = true
		return !again, nil
	}
}

func containsScalar(list []any, value any) bool {
	if !isScalar(value) {
		return false
	}
	for _, element := range list {
		if isScalar(element) && element == value {
			return true
		}
	}
	return false
}

func has(m *machine, args []any) (any, error) {
	list, err := listArg(args, 1)
	if err != nil {
		return nil, err
	}
	if !isScalar(args[0]) {
		return nil, wrongArgument(args, 0, "text, a number, true or false")
	}
	return containsScalar(list, args[0]), m.budget.step(int64(len(list)))
}

// texts writes each element of the list args[0].
func (m *machine) texts(args []any) ([]any, error) {
	list, err := listArg(args, 0)
	if err != nil {
		return nil, err
	}
	if err := m.budget.allocate(2 * listBytes(len(list))); err != nil {
		return nil, err
	}
	texts := make([]any, len(list))
	for i, element := range list {
		written, err := m.text(element)
		if err != nil {
			return nil, err
		}
		texts[i] = written
	}
	return texts, nil
}
