package value

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// Named map types. They differ from other maps in messages and in longer text.
type (
	// Properties holds the properties of a device, as in INSTANCE_PROPERTIES.
	Properties map[string]any
	// Selector holds the labels of LABEL_SELECTOR. In longer text it becomes
	// k=v,k=v.
	Selector map[string]any
)

var (
	// ErrOverflow reports an integer that an int64 cannot hold.
	ErrOverflow = errors.New("the result does not fit into 64 bits")
	// ErrNotFinite reports a number that JSON cannot represent.
	ErrNotFinite = errors.New("the number is not finite")
)

// AsMap returns value as a map, if it has any of the map types.
func AsMap(value any) (map[string]any, bool) {
	switch m := value.(type) {
	case map[string]any:
		return m, true
	case Properties:
		return m, true
	case Selector:
		return m, true
	}
	return nil, false
}

// Keys returns the keys of a map, sorted.
func Keys[M ~map[string]V, V any](m M) []string { return slices.Sorted(maps.Keys(m)) }

// KindName returns the author's name for the type of a value.
func KindName(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case int64:
		return "a whole number"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "a map"
}

// IsScalar reports whether a value is neither a list nor a map.
func IsScalar(value any) bool {
	switch value.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// Truthy reports whether a condition holds for a value, as in text/template:
// false, 0, "", nothing, and empty lists and maps do not hold.
func Truthy(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	}
	m, _ := AsMap(value)
	return len(m) > 0
}

// Normalize converts a scalar decoded from JSON or YAML: any number becomes int64
// or float64.
func Normalize(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64, string:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, ErrNotFinite
		}
		return v, nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), nil
		}
		return nil, ErrOverflow
	case float32:
		return Normalize(float64(v))
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, errors.New("the number does not fit into 64 bits")
		}
		return Normalize(f)
	}
	return nil, fmt.Errorf("a value of type %T is not JSON", value)
}
