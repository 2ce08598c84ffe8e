package templating

import (
	"fmt"
)

var mapFunctions = []Function{
	{Name: "dict", Group: "Maps", What: "a map of keys and values in turn", least: 0, most: -1,
		Example: `dict "a" 1 "b" 2`, Result: `{"a":1,"b":2}`, run: dict},
	{Name: "get", Group: "Maps", What: `the value of a key, or "" when it is not there`, least: 2, most: 2,
		Example: `get INSTANCE_PROPERTIES "MODEL"`, Result: `"t1"`, run: func(_ *machine, args []any) (any, error) {
			fields, key, err := mapAndKey(args)
			if value, found := fields[key]; found {
				return value, err
			}
			return "", err
		}},
	{Name: "hasKey", Group: "Maps", What: "whether the map has the key", least: 2, most: 2,
		Example: `hasKey INSTANCE_PROPERTIES "PORT"`, Result: `false`, run: func(_ *machine, args []any) (any, error) {
			fields, key, err := mapAndKey(args)
			_, found := fields[key]
			return found, err
		}},
	{Name: "dig", Group: "Maps", What: "the value under several keys, one map inside the other, or the last argument but one when it is not there", least: 3, most: -1,
		Example: `dig "a" "b" "none" (dict "a" (dict "b" 1))`, Result: `1`, run: dig},
	{Name: "keys", Group: "Maps", What: "the keys, sorted", least: 1, most: 1,
		Example: `keys (dict "b" 2 "a" 1)`, Result: `["a","b"]`, run: func(m *machine, args []any) (any, error) {
			return eachKey(m, args, func(key string, _ any) any { return key })
		}},
	{Name: "values", Group: "Maps", What: "the values, in the order of their keys", least: 1, most: 1,
		Example: `values (dict "b" 2 "a" 1)`, Result: `[1,2]`, run: func(m *machine, args []any) (any, error) {
			return eachKey(m, args, func(_ string, value any) any { return value })
		}},
	{Name: "pick", Group: "Maps", What: "the map with the given keys only", least: 2, most: -1,
		Example: `pick INSTANCE_PROPERTIES "IP" "MODEL"`, Result: `{"IP":"10.0.0.5","MODEL":"t1"}`, run: func(m *machine, args []any) (any, error) { return filterKeys(m, args, true) }},
	{Name: "omit", Group: "Maps", What: "the map without the given keys", least: 2, most: -1,
		Example: `omit (dict "a" 1 "b" 2) "a"`, Result: `{"b":2}`, run: func(m *machine, args []any) (any, error) { return filterKeys(m, args, false) }},
	{Name: "pluck", Group: "Maps", What: "the values of one key in several maps, as a list", least: 2, most: -1,
		Example: `pluck "a" (dict "a" 1) (dict "b" 2)`, Result: `[1]`, run: pluck},
	{Name: "merge", Group: "Maps", What: "one map of all, maps inside them merged too; the first map that has a key wins", least: 1, most: -1, deep: true,
		Example: `merge (dict "a" 1) (dict "a" 2 "b" 3)`, Result: `{"a":1,"b":3}`, run: func(m *machine, args []any) (any, error) { return mergeAll(m, args, false) }},
	{Name: "mergeOverwrite", Group: "Maps", What: "as merge; the last map that has a key wins", least: 1, most: -1, deep: true,
		Example: `mergeOverwrite (dict "a" 1) (dict "a" 2)`, Result: `{"a":2}`, run: func(m *machine, args []any) (any, error) { return mergeAll(m, args, true) }},
}

func mapAndKey(args []any) (map[string]any, string, error) {
	fields, err := mapArg(args, 0)
	if err != nil {
		return nil, "", err
	}
	key, err := textArg(args, 1)
	return fields, key, err
}

func dict(m *machine, args []any) (any, error) {
	if len(args)%2 != 0 {
		return nil, hintf(`write {{ dict "KEY" VALUE "KEY" VALUE }}`, "the last key has no value")
	}
	made := make(map[string]any, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		key, err := textArg(args, i)
		if err != nil {
			return nil, err
		}
		made[key] = args[i+1]
	}
	return made, nil
}

func dig(_ *machine, args []any) (any, error) {
	last := len(args) - 1
	keys, otherwise, value := args[:last-1], args[last-1], args[last]
	for i := range keys {
		key, err := textArg(args, i)
		if err != nil {
			return nil, err
		}
		fields, isMap := asMap(value)
		if !isMap {
			if i == 0 {
				return nil, wrongArgument(args, last, "a map")
			}
			return nil, fmt.Errorf("there are no keys in %s", kindName(value))
		}
		element, found := fields[key]
		if !found {
			return otherwise, nil
		}
		value = element
	}
	return value, nil
}

func eachKey(m *machine, args []any, choose func(string, any) any) (any, error) {
	fields, err := mapArg(args, 0)
	if err != nil {
		return nil, err
	}
	if err := m.budget.step(8 * int64(len(fields))); err != nil {
		return nil, err
	}
	if err := m.budget.allocate(3 * listBytes(len(fields))); err != nil {
		return nil, err
	}
	list := make([]any, 0, len(fields))
	for _, key := range keysOf(fields) {
		list = append(list, choose(key, fields[key]))
	}
	return list, nil
}

func filterKeys(m *machine, args []any, keep bool) (any, error) {
	fields, err := mapArg(args, 0)
	if err != nil {
		return nil, err
	}
	named := make(map[string]bool, len(args))
	for i := 1; i < len(args); i++ {
		key, err := textArg(args, i)
		if err != nil {
			return nil, err
		}
		named[key] = true
	}
	if err := m.makesMap(len(fields)); err != nil {
		return nil, err
	}
	made := make(map[string]any)
	for key, value := range fields {
		if named[key] == keep {
			made[key] = value
		}
	}
	return made, nil
}

func pluck(_ *machine, args []any) (any, error) {
	key, err := textArg(args, 0)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for i := 1; i < len(args); i++ {
		fields, err := mapArg(args, i)
		if err != nil {
			return nil, err
		}
		if value, found := fields[key]; found {
			list = append(list, value)
		}
	}
	return list, nil
}

func mergeAll(m *machine, args []any, lastWins bool) (any, error) {
	merged := map[string]any{}
	for i := range args {
		fields, err := mapArg(args, i)
		if err != nil {
			return nil, err
		}
		if merged, err = m.merge(merged, fields, lastWins); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// merge makes a new map; its arguments stay as they are.
func (m *machine) merge(a, b map[string]any, lastWins bool) (map[string]any, error) {
	if err := m.makesMap(len(a) + len(b)); err != nil {
		return nil, err
	}
	merged := make(map[string]any, max(len(a), len(b)))
	for key, value := range a {
		merged[key] = value
	}
	for key, value := range b {
		have, found := merged[key]
		inner, isMap := asMap(value)
		haveInner, haveMap := asMap(have)
		switch {
		case !found:
			merged[key] = value
		case isMap && haveMap:
			both, err := m.merge(haveInner, inner, lastWins)
			if err != nil {
				return nil, err
			}
			merged[key] = both
		case lastWins:
			merged[key] = value
		}
	}
	return merged, nil
}

// makesMap pays for a map.
func (m *machine) makesMap(entries int) error {
	if err := m.budget.step(4 * int64(entries)); err != nil {
		return err
	}
	return m.budget.allocate(mapBytes(entries))
}
