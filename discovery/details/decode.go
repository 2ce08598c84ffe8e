package details

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"
)

// Decode decodes discoveryDetails, which are YAML, into the struct that into points to.
// The struct has a json tag for each field. Its fields may be structs, pointers, slices,
// maps with strings as keys, strings, Booleans, numbers, any, and types with a method
// UnmarshalJSON. Fields without a key, and those whose value is null, keep their values,
// which are the defaults. An error is a *[Fault].
func Decode(discoveryDetails string, into any) error {
	if _, fault := parse(discoveryDetails); fault != nil {
		return fault
	}
	var tree any
	if err := yaml.UnmarshalStrict([]byte(discoveryDetails), &tree); err != nil {
		return invalidYAML(err)
	}
	if tree == nil {
		tree = map[string]any{}
	}
	if fault := check("", reflect.TypeOf(into).Elem(), tree); fault != nil {
		return fault
	}
	data, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return Faultf("", "not valid: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }
