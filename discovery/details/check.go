package details

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"akri.sh/akri/internal/text"
)

// maxQuoted is how many bytes of a wrong value a message quotes.
const maxQuoted = 60

// check compares a value with the type that it will be decoded into.
func check(path string, target reflect.Type, value any) *Fault {
	if value == nil {
		return nil
	}
	switch target.Kind() {
	case reflect.Pointer:
		return check(path, target.Elem(), value)
	case reflect.Struct:
		return checkStruct(path, target, value)
	case reflect.Map:
		return checkMap(path, target, value)
	case reflect.Slice:
		items, ok := value.([]any)
		if !ok {
			return wrongType(path, "a list", value).Hintf("put a dash before each element, or write [a, b]")
		}
		for i, item := range items {
			if item == nil && target.Elem().Kind() != reflect.Interface {
				return Faultf(at(path, i), "empty").Hintf("write a value, or remove the dash")
			}
			if fault := check(at(path, i), target.Elem(), item); fault != nil {
				return fault
			}
		}
		return nil
	}
	return checkScalar(path, target, value)
}

func checkStruct(path string, target reflect.Type, value any) *Fault {
	entries, ok := value.(map[string]any)
	if !ok {
		return wrongType(path, "a map", value)
	}
	fields := fieldsOf(target)
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		field, known := fields[key]
		if !known {
			names := slices.Sorted(maps.Keys(fields))
			remedy := "the keys are " + strings.Join(names, ", ")
			if near := text.Nearest(key, names); near != "" {
				remedy = "did you mean " + near + "?"
			}
			fault := Faultf(join(path, text.Truncate(text.OneLine(key), maxQuoted)), "unknown key").Hintf("%s", remedy)
			fault.ofKey = true
			return fault
		}
		if fault := check(join(path, key), field, entries[key]); fault != nil {
			return fault
		}
	}
	return nil
}

// fieldsOf returns the types of a struct's fields by key, including those of embedded
// structs.
func fieldsOf(target reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(target) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = field.Type
		}
	}
	return fields
}

func checkMap(path string, target reflect.Type, value any) *Fault {
	entries, ok := value.(map[string]any)
	if !ok {
		return wrongType(path, "a map", value)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if fault := check(join(path, key), target.Elem(), entries[key]); fault != nil {
			return fault
		}
	}
	return nil
}

// maxExact bounds the integers that YAML keeps exactly.
const maxExact = 1 << 53

func checkScalar(path string, target reflect.Type, value any) *Fault {
	switch target.Kind() {
	case reflect.String:
		if _, ok := value.(string); !ok {
			fault := wrongType(path, "a string", value)
			switch value.(type) {
			case bool, float64:
				return fault.Hintf("put it in quotes")
			}
			return fault
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return wrongType(path, "true or false", value)
		}
	case reflect.Int:
		number, ok := value.(float64)
		if !ok || number != math.Trunc(number) {
			return wrongType(path, "an integer", value)
		}
		if math.Abs(number) > maxExact {
			return Faultf(path, "%.15g is out of range", number)
		}
	}
	return nil
}

func wrongType(path, want string, value any) *Fault {
	data, err := json.Marshal(value)
	if err != nil {
		data = []byte("something else")
	}
	return Faultf(path, "want %s, not %s", want, text.Truncate(text.OneLine(string(data)), maxQuoted))
}
