package functions

import (
	"fmt"
	"maps"

	"akri.sh/akri/templating/internal/budget"
	"akri.sh/akri/templating/internal/fault"
	"akri.sh/akri/templating/internal/value"
)

const changesFirst = "changes its first argument, and replaces empty values"

var mapFunctions = []Function{
	{Name: "dict", What: "a map of alternating keys and values", takes: "any*", Example: `dict "a" 1 "b" 2`, Result: `{"a":1,"b":2}`,
		bound: checkPairs},
	{Name: "get", What: `the value of a key, or "" if the map does not have it`, takes: "map string",
		Example: `get INSTANCE_PROPERTIES "MODEL"`, Result: `"t1"`},
	{Name: "hasKey", What: "whether the map has the key", takes: "map string",
		Example: `hasKey INSTANCE_PROPERTIES "PORT"`, Result: `false`},
	{Name: "dig", What: "the value under several keys, one map inside the other, or the last argument but one if a key is missing",
		takes: "any any any+", Example: `dig "a" "b" "none" (dict "a" (dict "b" 1))`, Result: `1`,
		Unlike: "fails without a message if a value is no map", run: dig},
	{Name: "keys", What: "the keys, sorted", takes: "map", Unlike: "returns them in any order",
		Example: `keys (dict "b" 2 "a" 1)`, Result: `["a","b"]`, run: eachKey(func(key string, _ any) any { return key })},
	{Name: "values", What: "the values, in the order of their keys", takes: "map", Unlike: "returns them in any order",
		Example: `values (dict "b" 2 "a" 1)`, Result: `[1,2]`, run: eachKey(func(_ string, v any) any { return v })},
	{Name: "pick", What: "the map with only the given keys", takes: "map string+",
		Example: `pick INSTANCE_PROPERTIES "IP" "MODEL"`, Result: `{"IP":"10.0.0.5","MODEL":"t1"}`},
	{Name: "omit", What: "the map without the given keys", takes: "map string+",
		Example: `omit (dict "a" 1 "b" 2) "a"`, Result: `{"b":2}`,
		bound: func(b *budget.Budget, args []any) error { return payForMap(b, int(sizeOf(args[0]))) }},
	{Name: "pluck", What: "the values of one key in several maps, as a list", takes: "string map+",
		Example: `pluck "a" (dict "a" 1) (dict "b" 2)`, Result: `[1]`},
	{Name: "merge", What: "all maps in one, nested maps merged too; the first map that has a key wins", takes: "map+", deep: true,
		Example: `merge (dict "a" 1) (dict "a" 2 "b" 3)`, Result: `{"a":1,"b":3}`, Unlike: changesFirst, run: mergeAll(false)},
	{Name: "mergeOverwrite", What: "as merge; the last map that has a key wins", takes: "map+", deep: true,
		Example: `mergeOverwrite (dict "a" 1) (dict "a" 2)`, Result: `{"a":2}`, Unlike: changesFirst, run: mergeAll(true)},
}

// checkPairs refuses keys without a value and keys that are no strings, which sprig's dict takes.
func checkPairs(_ *budget.Budget, args []any) error {
	if len(args)%2 != 0 {
		return fault.Hintf(`write {{ dict "KEY" VALUE "KEY" VALUE }}`, "the last key has no value")
	}
	for i := 0; i < len(args); i += 2 {
		if err := check(args, i, "string"); err != nil {
			return err
		}
	}
	return nil
}

func dig(_ *budget.Budget, args []any) (any, error) {
	keys, otherwise, v := args[:len(args)-2], args[len(args)-2], args[len(args)-1]
	for i := range keys {
		if err := check(args, i, "string"); err != nil {
			return nil, err
		}
		fields, ok := value.AsMap(v)
		switch {
		case !ok && i == 0:
			return nil, check(args, len(args)-1, "map")
		case !ok:
			return nil, fmt.Errorf("there are no keys in %s", value.KindName(v))
		}
		if v, ok = fields[args[i].(string)]; !ok {
			return otherwise, nil
		}
	}
	return v, nil
}

func eachKey(choose func(string, any) any) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		fields, _ := value.AsMap(args[0])
		if err := b.Pay(8*int64(len(fields)), 3*budget.ListBytes(len(fields))); err != nil {
			return nil, err
		}
		list := make([]any, 0, len(fields))
		for _, key := range value.Keys(fields) {
			list = append(list, choose(key, fields[key]))
		}
		return list, nil
	}
}

func mergeAll(lastWins bool) impl {
	return func(b *budget.Budget, args []any) (any, error) {
		merged := map[string]any{}
		for _, arg := range args {
			fields, _ := value.AsMap(arg)
			var err error
			if merged, err = merge(b, merged, fields, lastWins); err != nil {
				return nil, err
			}
		}
		return merged, nil
	}
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
	return b.Pay(4*int64(entries), budget.MapBytes(entries))
}
