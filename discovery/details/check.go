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

// MaxQuoted is how many bytes of a wrong value a message quotes.
const MaxQuoted = 60

// maxFaults bounds how many mistakes are reported.
const maxFaults = 20

// checker compares values with the types that they will be decoded into.
type checker struct{ faults []*Fault }

// check reports whether a value can be decoded. It takes out what cannot of lists and maps.
func (c *checker) check(path string, target reflect.Type, value any) bool {
	var fault *Fault
	switch kind := target.Kind(); {
	case value == nil || len(c.faults) >= maxFaults:
	case kind == reflect.Pointer:
		return c.check(path, target.Elem(), value)
	case kind == reflect.Struct:
		fault = c.checkStruct(path, target, value)
	case kind == reflect.Map:
		fault = c.checkMap(path, target, value)
	case kind == reflect.Slice:
		fault = c.checkList(path, target, value)
	default:
		fault = checkScalar(path, target, value)
	}
	if fault != nil {
		c.faults = append(c.faults, fault)
	}
	return fault == nil
}

func (c *checker) checkList(path string, target reflect.Type, value any) *Fault {
	items, ok := value.([]any)
	if !ok {
		return wrongType(path, "a list", value).Hintf("put a dash before each element, or write [a, b]")
	}
	for i, item := range items {
		if item == nil && target.Elem().Kind() != reflect.Interface {
			c.faults = append(c.faults, Faultf(at(path, i), "empty").Hintf("write a value, or remove the dash"))
		} else if !c.check(at(path, i), target.Elem(), item) {
			items[i] = nil
		}
	}
	return nil
}

func (c *checker) checkStruct(path string, target reflect.Type, value any) *Fault {
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
			} else if owner := ownerOf(key, target); owner != "" {
				remedy = "write it below " + owner
			}
			fault := Faultf(join(path, text.Truncate(text.OneLine(key), MaxQuoted)), "unknown key").Hintf("%s", remedy)
			fault.ofKey = true
			c.faults = append(c.faults, fault)
			delete(entries, key)
		} else if !c.check(join(path, key), field, entries[key]) {
			delete(entries, key)
		}
	}
	return nil
}

// ownerOf returns the path of the first struct within another that has a key, or "".
func ownerOf(key string, within reflect.Type) string {
	for _, field := range reflect.VisibleFields(within) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct || fieldsOf(within)[name] == nil {
			continue
		}
		if fieldsOf(inner)[key] != nil {
			return name
		}
		if owner := ownerOf(key, inner); owner != "" {
			return name + "." + owner
		}
	}
	return ""
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

func (c *checker) checkMap(path string, target reflect.Type, value any) *Fault {
	entries, ok := value.(map[string]any)
	if !ok {
		return wrongType(path, "a map", value)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if !c.check(join(path, key), target.Elem(), entries[key]) {
			delete(entries, key)
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
	return Faultf(path, "want %s, not %s", want, text.Truncate(text.OneLine(string(data)), MaxQuoted))
}
