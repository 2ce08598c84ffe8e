package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a part of a JSON schema.
type node = map[string]any

// writeSchema writes values.schema.json, which refuses keys that do not exist.
func writeSchema(chart string, all *allValues) error {
	spec, err := specOf(filepath.Join(chart, "files", "crds", "akri.sh_configurations.yaml"))
	if err != nil {
		return err
	}
	root, handler := table(), table()
	root["$schema"] = "https://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart akri"
	root["patternProperties"] = node{"^x-": node{"description": "Anything, such as anchors for YAML."}}
	root["definitions"] = node{"handler": handler}
	for _, v := range all.own {
		if err := add(root, v); err != nil {
			return err
		}
	}
	for _, h := range all.handler {
		if err := add(handler, h); err != nil {
			return err
		}
	}
	properties := propertiesOf(root)
	pods := propertiesOf(properties["pods"].(node))
	for _, component := range []node{handler, at(root, []string{"controller"}), at(root, []string{"webhook"}), at(root, []string{"agent"})} {
		refer(component, pods, "#/properties/pods/properties/")
	}
	handlers := propertiesOf(properties["handlers"].(node))
	for name, h := range handlers {
		if len(propertiesOf(h.(node))) == 0 {
			handlers[name] = node{"$ref": "#/definitions/handler"}
		} else {
			refer(h.(node), propertiesOf(handler), "#/definitions/handler/properties/")
		}
	}
	propertiesOf(handlers["udev"].(node))["kind"] = node{"const": "DaemonSet"}
	requireTables(root)
	// Those who depend on this chart under a condition set it; Helm hands it down.
	properties["enabled"] = node{"type": "boolean", "description": "No effect: for the condition of a chart that depends on this one."}
	delete(properties["global"].(node), "additionalProperties")
	properties["configurations"] = configurations(spec)
	egress := table()
	for _, component := range append([]string{"controller", "webhook", "agent"}, slices.Collect(maps.Keys(handlers))...) {
		propertiesOf(egress)[component] = node{"type": "array", "items": node{"type": "object"}}
	}
	propertiesOf(properties["networkPolicy"].(node))["egress"] = egress
	addAkri(root, all.akri)
	return os.WriteFile(filepath.Join(chart, "values.schema.json"), []byte(format(root, "")+"\n"), 0o644)
}

// table is the schema of an object with the keys that are added to it, and no others.
func table() node {
	return node{"type": "object", "additionalProperties": false, "properties": node{}}
}

func propertiesOf(table node) node {
	properties, _ := table["properties"].(node)
	return properties
}

// at returns the table at a path, and creates it if necessary.
func at(root node, path []string) node {
	for _, key := range path {
		next, ok := propertiesOf(root)[key].(node)
		if !ok {
			next = table()
			propertiesOf(root)[key] = next
		}
		root = next
	}
	return root
}

// add adds a key, unless it is inherited.
func add(root node, v value) error {
	parent, key := at(root, v.path[:len(v.path)-1]), v.path[len(v.path)-1]
	if v.inherited {
		return nil
	}
	types, err := schemaOf(v.kind)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(v.path, "."), err)
	}
	schema := node{"anyOf": types}
	if len(types) == 1 {
		schema = maps.Clone(types[0])
	}
	schema["description"] = v.description
	propertiesOf(parent)[key] = schema
	return nil
}

// refer adds the keys of a table that another one lacks as references to them.
func refer(table, to node, place string) {
	for key := range to {
		if propertiesOf(table)[key] == nil {
			propertiesOf(table)[key] = node{"$ref": place + key}
		}
	}
}

// requireTables refuses null for the tables of values.yaml, which would remove them.
func requireTables(table node) {
	for _, key := range slices.Sorted(maps.Keys(propertiesOf(table))) {
		child := propertiesOf(table)[key].(node)
		if child["properties"] != nil || child["$ref"] == "#/definitions/handler" {
			required, _ := table["required"].([]string)
			table["required"] = append(required, key)
			requireTables(child)
		}
	}
}

// addAkri permits the keys of Akri's chart, also those that are gone. A template checks them,
// because it can say what to do: see templates/_akri.tpl.
func addAkri(root node, akri map[string]any) {
	permit := func(table node, key string, schema node) {
		if propertiesOf(table)[key] == nil {
			propertiesOf(table)[key] = schema
		}
	}
	for name, child := range akri {
		keys, isTable := child.(map[string]any)
		own, shared := propertiesOf(root)[name].(node)
		switch {
		case shared:
			for key := range keys {
				permit(own, key, node{})
			}
		case isTable && !strings.HasPrefix(name, "x-"):
			permit(root, name, node{"type": []string{"object", "null"}})
		case !isTable && name != "gone":
			permit(root, name, node{})
		}
	}
	gone, _ := akri["gone"].([]any)
	for _, key := range gone {
		path := strings.Split(fmt.Sprint(key), ".")
		permit(at(root, path[:len(path)-1]), path[len(path)-1], node{})
	}
}

// schemaOf returns the alternatives that a type in a comment stands for.
func schemaOf(kind string) ([]node, error) {
	simple := map[string]node{
		"bool": {"type": "boolean"}, "string": {"type": "string"}, "int": {"type": "integer"}, "number": {"type": "number"},
		"object": {"type": "object"}, "any": {},
		"map":      {"type": "object", "additionalProperties": node{"type": "string"}},
		"[string]": {"type": "array", "items": node{"type": "string"}},
		"[object]": {"type": "array", "items": node{"type": "object"}},
		"[any]":    {"type": "array"},
		"resources": {"type": "object", "additionalProperties": false, "properties": node{
			"requests": node{"type": "object"}, "limits": node{"type": "object"}, "claims": node{"type": "array"},
		}},
		// Also as Akri's chart has them.
		"akri-resources": {"type": "object", "additionalProperties": false, "properties": node{
			"requests": node{"type": "object"}, "limits": node{"type": "object"}, "claims": node{"type": "array"},
			"memoryRequest": node{}, "cpuRequest": node{}, "memoryLimit": node{}, "cpuLimit": node{},
		}},
		"digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
	}
	var result []node
	var words []string
	for name := range strings.SplitSeq(kind, "|") {
		if t, ok := simple[name]; ok {
			result = append(result, t)
		} else {
			words = append(words, name)
		}
	}
	if len(words) == 1 {
		return nil, fmt.Errorf("unknown type %q", words[0])
	}
	if len(words) > 0 {
		result = append(result, node{"enum": words})
	}
	return result, nil
}

// configurations is the schema of the list of Configurations.
func configurations(spec node) node {
	texts := node{"type": "object", "additionalProperties": node{"type": "string"}}
	entry := table()
	entry["required"] = []string{"name", "spec"}
	entry["properties"] = node{
		// Also the names that only Configurations of the original Akri have.
		"name":      node{"type": "string", "maxLength": 253, "pattern": `^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`},
		"namespace": node{"type": "string", "maxLength": 63, "pattern": `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`},
		"labels":    texts, "annotations": texts, "spec": spec,
	}
	return node{"type": "array", "items": entry}
}

// format returns a schema as JSON. What fits into a line, or has no parts, is one line.
func format(v any, indent string) string {
	var short bytes.Buffer
	encoder := json.NewEncoder(&short)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		panic(err) // a schema consists of texts, numbers, lists and tables
	}
	text := strings.TrimSpace(short.String())
	n, ok := v.(node)
	if !ok || len(text) <= 140 || !hasParts(n) {
		return text
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(n)) {
		parts = append(parts, fmt.Sprintf("%s  %q: %s", indent, key, format(n[key], indent+"  ")))
	}
	return "{\n" + strings.Join(parts, ",\n") + "\n" + indent + "}"
}

func hasParts(n node) bool {
	for _, v := range n {
		if _, ok := v.(node); ok {
			return true
		}
	}
	return false
}

// specOf reads the schema of the field spec from the manifest of a CustomResourceDefinition.
func specOf(file string) (node, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var definition struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPI struct {
						Properties map[string]node `yaml:"properties"`
					} `yaml:"openAPIV3Schema"`
				} `yaml:"schema"`
			} `yaml:"versions"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(data, &definition); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	versions := definition.Spec.Versions
	if len(versions) != 1 || versions[0].Schema.OpenAPI.Properties["spec"] == nil {
		return nil, fmt.Errorf("%s: want one version, with a spec", file)
	}
	return jsonSchema(versions[0].Schema.OpenAPI.Properties["spec"]), nil
}

// jsonSchema converts a structural schema of Kubernetes. Objects have no other fields than
// those that it names, unless it keeps unknown fields, as where templates are.
func jsonSchema(structural node) node {
	result := node{}
	for key, v := range structural {
		switch key {
		case "nullable", "default", "format":
		case "properties":
			properties := node{}
			for name, property := range v.(node) {
				properties[name] = jsonSchema(property.(node))
			}
			result[key] = properties
		case "items", "additionalProperties":
			result[key] = v
			if child, ok := v.(node); ok {
				result[key] = jsonSchema(child)
			}
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") {
				result[key] = v
			}
		}
	}
	if structural["x-kubernetes-int-or-string"] == true {
		result["type"] = []string{"integer", "string"}
		delete(result, "anyOf")
	}
	if structural["properties"] != nil && structural["x-kubernetes-preserve-unknown-fields"] != true {
		result["additionalProperties"] = false
	}
	if structural["nullable"] == true {
		result = node{"anyOf": []node{result, {"type": "null"}}}
	}
	return result
}
