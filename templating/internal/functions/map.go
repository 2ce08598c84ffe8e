package functions

import (
	"fmt"
	"maps"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

var mapFunctions = []Function{
	{Name: "dict", Group: "Maps", What: "a map of alternating keys and values", min: 0, max: -1,
		Example: `dict "a" 1 "b" 2`, Result: `{"a":1,"b":2}`,
		run: dict},
	{Name: "get", Group: "Maps", What: `the value of a key, or "" if the map does not have it`, min: 2, max: 2,
		Example: `get INSTANCE_PROPERTIES "MODEL"`, Result: `"t1"`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			fields, key, err := mapAndKey(args)
			if v, found := fields[key]; found {
				return v, err
			}
			return "", err
		}},
	{Name: "hasKey", Group: "Maps", What: "whether the map has the key", min: 2, max: 2,
		Example: `hasKey INSTANCE_PROPERTIES "PORT"`, Result: `false`,
		run: func(_ *budget.Budget, args []any) (any, error) {
			fields, key, err := mapAndKey(args)
			_, found := fields[key]
			return found, err
		}},
	{Name: "dig", Group: "Maps",
		What: "the value under several keys, one map inside the other, or the last argument but one if a key is missing", min: 3, max: -1,
		Example: `dig "a" "b" "none" (dict "a" (dict "b" 1))`, Result: `1`,
		run: dig},
	{Name: "keys", Group: "Maps", What: "the keys, sorted", min: 1, max: 1,
		Example: `keys (dict "b" 2 "a" 1)`, Result: `["a","b"]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			return eachKey(b, args, func(key string, _ any) any { return key })
		}},
	{Name: "values", Group: "Maps", What: "the values, in the order of their keys", min: 1, max: 1,
		Example: `values (dict "b" 2 "a" 1)`, Result: `[1,2]`,
		run: func(b *budget.Budget, args []any) (any, error) {
			return eachKey(b, args, func(_ string, v any) any { return v })
		}},
	{Name: "pick", Group: "Maps", What: "the map with only the given keys", min: 2, max: -1,
		Example: `pick INSTANCE_PROPERTIES "IP" "MODEL"`, Result: `{"IP":"10.0.0.5","MODEL":"t1"}`,
		run: func(b *budget.Budget, args []any) (any, error) { return filterKeys(b, args, true) }},
	{Name: "omit", Group: "Maps", What: "the map without the given keys", min: 2, max: -1,
		Example: `omit (dict "a" 1 "b" 2) "a"`, Result: `{"b":2}`,
		run: func(b *budget.Budget, args []any) (any, error) { return filterKeys(b, args, false) }},
	{Name: "pluck", Group: "Maps", What: "the values of one key in several maps, as a list", min: 2, max: -1,
		Example: `pluck "a" (dict "a" 1) (dict "b" 2)`, Result: `[1]`,
		run: pluck},
	{Name: "merge", Group: "Maps",
		What: "all maps in one, nested maps merged too; the first map that has a key wins", min: 1, max: -1, deep: true,
		Example: `merge (dict "a" 1) (dict "a" 2 "b" 3)`, Result: `{"a":1,"b":3}`,
		run: func(b *budget.Budget, args []any) (any, error) { return mergeAll(b, args, false) }},
	{Name: "mergeOverwrite", Group: "Maps", What: "as merge; the last map that has a key wins", min: 1, max: -1, deep: true,
		Example: `mergeOverwrite (dict "a" 1) (dict "a" 2)`, Result: `{"a":2}`,
		run: func(b *budget.Budget, args []any) (any, error) { return mergeAll(b, args, true) }},
}

func mapAndKey(args []any) (map[string]any, string, error) {
	fields, err := mapArg(args, 0)
	if err != nil {
		return nil, "", err
	}
	key, err := textArg(args, 1)
	return fields, key, err
}

func dict(b *budget.Budget, args []any) (any, error) {
	if len(args)%2 != 0 {
		return nil, fault.Hintf(`write {{ dict "KEY" VALUE "KEY" VALUE }}`, "the last key has no value")
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

func dig(_ *budget.Budget, args []any) (any, error) {
	last := len(args) - 1
	keys, fallback, v := args[:last-1], args[last-1], args[last]
	for i := range keys {
		key, err := textArg(args, i)
		if err != nil {
			return nil, err
		}
		fields, ok := value.AsMap(v)
		if !ok {
			if i == 0 {
				return nil, wrongArgument(args, last, "a map")
			}
			return nil, fmt.Errorf("there are no keys in %s", value.KindName(v))
		}
		element, found := fields[key]
		if !found {
			return fallback, nil
		}
		v = element
	}
	return v, nil
}

func eachKey(b *budget.Budget, args []any, choose func(string, any) any) (any, error) {
	fields, err := mapArg(args, 0)
	if err != nil {
		return nil, err
	}
	if err := b.Step(8 * int64(len(fields))); err != nil {
		return nil, err
	}
	if err := b.Allocate(3 * budget.ListBytes(len(fields))); err != nil {
		return nil, err
	}
	list := make([]any, 0, len(fields))
	for _, key := range value.Keys(fields) {
		list = append(list, choose(key, fields[key]))
	}
	return list, nil
}

func filterKeys(b *budget.Budget, args []any, keep bool) (any, error) {
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
	if err := payForMap(b, len(fields)); err != nil {
		return nil, err
	}
	made := make(map[string]any)
	for key, v := range fields {
		if named[key] == keep {
			made[key] = v
		}
	}
	return made, nil
}

func pluck(_ *budget.Budget, args []any) (any, error) {
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
		if v, found := fields[key]; found {
			list = append(list, v)
		}
	}
	return list, nil
}

func mergeAll(b *budget.Budget, args []any, lastWins bool) (any, error) {
	merged := map[string]any{}
	for i := range args {
		fields, err := mapArg(args, i)
		if err != nil {
			return nil, err
		}
		if merged, err = merge(b, merged, fields, lastWins); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// merge returns a new map; it does not change its arguments.
func merge(b *budget.Budget, first, second map[string]any, lastWins bool) (map[string]any, error) {
	if err := payForMap(b, len(first)+len(second)); err != nil {
		return nil, err
	}
	merged := make(map[string]any, max(len(first), len(second)))
	maps.Copy(merged, first)
	for key, v := range second {
		old, found := merged[key]
		inner, isMap := value.AsMap(v)
		oldInner, oldIsMap := value.AsMap(old)
		switch {
		case !found:
			merged[key] = v
		case isMap && oldIsMap:
			both, err := merge(b, oldInner, inner, lastWins)
			if err != nil {
				return nil, err
			}
			merged[key] = both
		case lastWins:
			merged[key] = v
		}
	}
	return merged, nil
}

// payForMap pays for a new map.
func payForMap(b *budget.Budget, entries int) error {
	if err := b.Step(4 * int64(entries)); err != nil {
		return err
	}
	return b.Allocate(budget.MapBytes(entries))
}
