package details

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
	yamlv3 "sigs.k8s.io/yaml/goyaml.v3"
)

// decoding is held while details are decoded. After a restart of a handler, agents send
// the details of all Configurations at once, and each takes up to 200 times its size.
var decoding sync.Mutex

// Decode decodes discoveryDetails, which are YAML, into the struct that into points to.
// The struct has a json tag for each field. Its fields may be structs, pointers, slices,
// maps with strings as keys, strings, Booleans, integers of type int, and any. Fields
// without a key, and those whose value is null, keep their values, which are the defaults.
//
// Then it calls the checks, which return mistakes in what was decoded. The error has all
// mistakes, up to a bound, each a *[Fault]: see [Faults].
func Decode(discoveryDetails string, into any, checks ...func() error) error {
	decoding.Lock()
	defer decoding.Unlock()
	root, fault := parse(discoveryDetails)
	if fault != nil {
		return fault
	}
	wrong := decode(discoveryDetails, into)
	known := len(wrong)
	if known >= maxFaults || slices.ContainsFunc(wrong, func(f *Fault) bool { return f.Path == "" }) {
		checks = nil // too little was decoded
	}
	for _, check := range checks {
		for _, fault := range Faults(check()) {
			if known == 0 || fault.independent(root, wrong[:known]) {
				wrong = append(wrong, fault)
			}
		}
	}
	var all []error
	for _, fault := range wrong[:min(len(wrong), maxFaults)] {
		all = append(all, fault)
	}
	return errors.Join(all...)
}

// decode decodes what has no mistakes, and returns the others.
func decode(discoveryDetails string, into any) []*Fault {
	var tree any
	if err := yaml.UnmarshalStrict([]byte(discoveryDetails), &tree); err != nil {
		return []*Fault{invalidYAML(err)}
	}
	if tree == nil {
		tree = map[string]any{}
	}
	var c checker
	if !c.check("", reflect.TypeOf(into).Elem(), tree) || len(c.faults) >= maxFaults {
		return c.faults
	}
	data, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return append(c.faults, Faultf("", "not valid: %s", strings.TrimPrefix(err.Error(), "json: ")))
	}
	return c.faults
}

// Text returns discoveryDetails that are nothing but a string. ok is false if they are
// anything else, or exceed the bounds: then [Decode] says what is wrong.
func Text(discoveryDetails string) (text string, ok bool) {
	decoding.Lock()
	defer decoding.Unlock()
	root, fault := parse(discoveryDetails)
	if fault != nil || root == nil || len(root.Content) != 1 {
		return "", false
	}
	value := root.Content[0]
	return value.Value, value.Kind == yamlv3.ScalarNode && value.ShortTag() == "!!str"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func at(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }
