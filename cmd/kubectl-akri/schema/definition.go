package schema

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/config/crd"
)

// node holds the validation keywords of a schema. A test checks that it has all
// keywords of the definitions.
type node struct {
	Type                 string           `json:"type"`
	Format               string           `json:"format"`
	Pattern              string           `json:"pattern"`
	Enum                 []any            `json:"enum"`
	Nullable             bool             `json:"nullable"`
	Required             []string         `json:"required"`
	Properties           map[string]*node `json:"properties"`
	AdditionalProperties *node            `json:"additionalProperties"`
	Items                *node            `json:"items"`
	Minimum              *float64         `json:"minimum"`
	Maximum              *float64         `json:"maximum"`
	MinLength            *int             `json:"minLength"`
	MaxLength            *int             `json:"maxLength"`
	MaxItems             *int             `json:"maxItems"`
	MaxProperties        *int             `json:"maxProperties"`
	PreserveUnknown      bool             `json:"x-kubernetes-preserve-unknown-fields"`
	IntOrString          bool             `json:"x-kubernetes-int-or-string"`
	Rules                []celRule        `json:"x-kubernetes-validations"`

	common []string // the fields that people usually set, if not all
}

// fields returns the fields that messages suggest.
func (n *node) fields() []string {
	if n.common != nil {
		return n.common
	}
	return slices.Sorted(maps.Keys(n.Properties))
}

// celRule is a CEL expression over self that must be true.
type celRule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// OptionalOldSelf means that the rule applies to new objects, too: oldSelf is then
	// an optional value.
	OptionalOldSelf bool `json:"optionalOldSelf"`
}

type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind string `json:"kind"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPIV3Schema *node `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
}

// kind is a kind with its schema.
type kind struct {
	apiVersion, name string
	schema           *node
}

// kinds returns the kinds of Akri. The definitions are embedded in the program, so an
// error is a bug.
var kinds = sync.OnceValue(func() []kind {
	var all []kind
	for _, data := range [][]byte{crd.Configurations, crd.Instances} {
		var d definition
		if err := yaml.Unmarshal(data, &d); err != nil {
			panic(fmt.Sprintf("parse the embedded CustomResourceDefinition: %v", err))
		}
		for _, version := range d.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			root.Properties["metadata"] = metadata
			delete(root.Properties, "status") // ignored when an object is applied
			if d.Spec.Names.Kind == "Instance" {
				// Agents write Instances. Those that people write for a test may be short.
				root.Properties["spec"].Required = nil
				root.Rules = nil // about their names
			}
			all = append(all, kind{d.Spec.Group + "/" + version.Name, d.Spec.Names.Kind, root})
		}
	}
	return all
})

// metadata is the schema of ObjectMeta, which definitions leave to the API server.
var metadata = &node{Type: "object", Required: []string{"name"}, Properties: map[string]*node{
	"name": {Type: "string"}, "namespace": {Type: "string"}, "generateName": {Type: "string"},
	"labels": stringMap, "annotations": stringMap,
	"finalizers":                 {Type: "array", Items: &node{Type: "string"}},
	"ownerReferences":            {Type: "array", Items: anyObject},
	"managedFields":              {Type: "array", Items: anyObject},
	"generation":                 {Type: "integer"},
	"deletionGracePeriodSeconds": {Type: "integer"},
	"creationTimestamp":          {Type: "string", Nullable: true},
	"deletionTimestamp":          {Type: "string", Nullable: true},
	"resourceVersion":            {Type: "string"}, "uid": {Type: "string"}, "selfLink": {Type: "string"},
}, common: []string{"annotations", "labels", "name", "namespace"}}

var (
	stringMap = &node{Type: "object", Nullable: true, AdditionalProperties: &node{Type: "string"}}
	anyObject = &node{Type: "object", PreserveUnknown: true}
)
