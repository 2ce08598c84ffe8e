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
	root := table()
	root["$schema"] = "https://json-schema.org/draft-07/schema#"
	root["title"] = "Values of the chart akri"
	// Helm adds it to all charts.
	root["properties"].(node)["global"] = node{"type": "object"}
	for _, v := range all.own {
		if err := add(root, v); err != nil {
			return err
		}
		if v.path[0] == "handlers" {
			for _, h := range all.handler {
				h.path = append([]string{"handlers", v.path[1]}, h.path...)
				if err := add(root, h); err != nil {
					return err
				}
			}
		}
	}
	requireTables(root)
	for _, v := range all.akri {
		if err := add(root, v); err != nil {
			return err
		}
	}
	for _, g := range all.gone {
		path := strings.Split(g.Key, ".")
		at(root, path[:len(path)-1])["properties"].(node)[path[len(path)-1]] = node{"description": "No meaning here: " + g.Message}
	}
	only(root, "handlers", "udev", "kind", "DaemonSet")
	at(root, nil)["properties"].(node)["configurations"] = configurations(spec)
	egress := table()
	for _, component := range components(root) {
		egress["properties"].(node)[component] = node{"type": "array", "items": node{"type": "object"}}
	}
	at(root, []string{"networkPolicy"})["properties"].(node)["egress"].(node)["anyOf"] = []node{egress}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(chart, "values.schema.json"), out.Bytes(), 0o644)
}

// table is the schema of an object with the keys that are added to it, and no others.
func table() node {
	return node{"type": "object", "additionalProperties": false, "properties": node{}}
}

// at returns the table at a path, and creates it if necessary.
func at(root node, path []string) node {
	for _, key := range path {
		properties := root["properties"].(node)
		next, ok := properties[key].(node)
		if !ok {
			next = table()
			properties[key] = next
		}
		root = next
	}
	return root
}

// add adds a key. Two files may describe the same key: then both types are accepted, and of
// tables the keys of both at once.
func add(root node, v value) error {
	types, err := schemaOf(v.kind)
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(v.path, "."), err)
	}
	if v.nullable {
		types = append(types, node{"type": "null"})
	}
	properties := at(root, v.path[:len(v.path)-1])["properties"].(node)
	key := v.path[len(v.path)-1]
	if old, ok := properties[key].(node); ok {
		for _, t := range old["anyOf"].([]node) {
			if inTable(types, t) {
				continue
			}
			if !slices.ContainsFunc(types, func(other node) bool { return fmt.Sprint(t) == fmt.Sprint(other) }) {
				types = append(types, t)
			}
		}
		properties[key] = node{"description": old["description"], "anyOf": types}
		return nil
	}
	properties[key] = node{"description": v.description, "anyOf": types}
	return nil
}

// inTable adds the keys of a table to that among types, if there is one.
func inTable(types []node, table node) bool {
	keys, ok := table["properties"].(node)
	if !ok {
		return false
	}
	for _, t := range types {
		if others, ok := t["properties"].(node); ok {
			maps.Copy(others, keys)
			return true
		}
	}
	return false
}

// requireTables refuses null for the tables of values.yaml, which would remove them.
func requireTables(table node) {
	properties, _ := table["properties"].(node)
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		if child, ok := properties[key].(node); ok && child["properties"] != nil {
			required, _ := table["required"].([]string)
			table["required"] = append(required, key)
			requireTables(child)
		}
	}
}

// only restricts a key to one value.
func only(root node, path ...string) {
	last := len(path) - 1
	properties := at(root, path[:last-1])["properties"].(node)
	properties[path[last-1]].(node)["anyOf"] = []node{{"enum": []string{path[last]}}}
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
		// As Akri's chart has them.
		"akri-resources": {"type": "object", "additionalProperties": false, "properties": node{
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

// components returns what has a NetworkPolicy.
func components(root node) []string {
	handlers := slices.Sorted(maps.Keys(at(root, []string{"handlers"})["properties"].(node)))
	return append([]string{"controller", "webhook", "agent"}, handlers...)
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
