package schema

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"akri.sh/akri/config/crd"
	"sigs.k8s.io/yaml"
)

// node is the part of a schema that says what is allowed. A test sees to it that
// no keyword of our definitions is missing here.
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
	Rules                []rule           `json:"x-kubernetes-validations"`

	usual []string // the fields that people write, if not all
}

// fields are those that messages suggest.
func (n *node) fields() []string {
	if n.usual != nil {
		return n.usual
	}
	return slices.Sorted(maps.Keys(n.Properties))
}

// rule is a condition in CEL over self.
type rule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
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

// kind is a kind that can be checked.
type kind struct {
	apiVersion, name string
	schema           *node
}

// kinds is read when it is first needed. The definitions are part of the program:
// if they cannot be read, the program is broken.
var kinds = sync.OnceValue(func() []kind {
	var all []kind
	for _, data := range [][]byte{crd.Configurations, crd.Instances} {
		var d definition
		if err := yaml.Unmarshal(data, &d); err != nil {
			panic(fmt.Sprintf("the CustomResourceDefinition in this program cannot be read: %v", err))
		}
		for _, version := range d.Spec.Versions {
			root := version.Schema.OpenAPIV3Schema
			root.Properties["metadata"] = metadata
			delete(root.Properties, "status") // not the author's, and ignored when an object is applied
			if d.Spec.Names.Kind == "Instance" {
				root.Properties["spec"].Required = nil // agents write Instances; people who try something write short ones
			}
			all = append(all, kind{d.Spec.Group + "/" + version.Name, d.Spec.Names.Kind, root})
		}
	}
	return all
})

// metadata is what every object has; definitions leave it to the API server.
var metadata = &node{Type: "object", Required: []string{"name"}, Properties: map[string]*node{
	"name": {Type: "string"}, "namespace": {Type: "string"}, "generateName": {Type: "string"},
	"labels": texts, "annotations": texts,
	"finalizers":                 {Type: "array", Items: &node{Type: "string"}},
	"ownerReferences":            {Type: "array", Items: anything},
	"managedFields":              {Type: "array", Items: anything},
	"generation":                 {Type: "integer"},
	"deletionGracePeriodSeconds": {Type: "integer"},
	"creationTimestamp":          {Type: "string", Nullable: true},
	"deletionTimestamp":          {Type: "string", Nullable: true},
	"resourceVersion":            {Type: "string"}, "uid": {Type: "string"}, "selfLink": {Type: "string"},
}, usual: []string{"annotations", "labels", "name", "namespace"}}

var (
	texts    = &node{Type: "object", Nullable: true, AdditionalProperties: &node{Type: "string"}}
	anything = &node{Type: "object", PreserveUnknown: true}
)
