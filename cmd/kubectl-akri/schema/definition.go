package schema

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/config/crd"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// kind is a kind of Akri with what the API server validates its objects with.
type kind struct {
	apiVersion, name string
	schema           *schema.Structural
	values           validation.SchemaValidator
	rules            *cel.Validator
}

// kinds returns the kinds of Akri. The definitions are embedded in the program, so an
// error is a bug.
var kinds = sync.OnceValue(func() []kind {
	var all []kind
	for _, data := range [][]byte{crd.Configurations, crd.Instances} {
		var d apiextensionsv1.CustomResourceDefinition
		err := yaml.UnmarshalStrict(data, &d)
		for i := 0; err == nil && i < len(d.Spec.Versions); i++ {
			k := kind{apiVersion: d.Spec.Group + "/" + d.Spec.Versions[i].Name, name: d.Spec.Names.Kind}
			err = k.setSchema(d.Spec.Versions[i].Schema.OpenAPIV3Schema)
			all = append(all, k)
		}
		if err != nil {
			panic(fmt.Sprintf("the embedded CustomResourceDefinition: %v", err))
		}
	}
	return all
})

func (k *kind) setSchema(root *apiextensionsv1.JSONSchemaProps) error {
	if k.name == "Instance" {
		// Agents write Instances. Those that people write for a test may be short.
		spec := root.Properties["spec"]
		spec.Required = nil
		root.Properties["spec"] = spec
		root.XValidations = nil // about their names
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, &props, nil)
	if err != nil {
		return err
	}
	if k.schema, err = schema.NewStructural(&props); err != nil {
		return err
	}
	k.rules = cel.NewValidator(k.schema, true, celconfig.PerCallLimit)
	k.values = validation.NewSchemaValidatorFromOpenAPI(k.schema.ToKubeOpenAPI())
	return nil
}

// at returns the schema of a field, or nil.
func (k *kind) at(field templating.Path) *schema.Structural {
	s := k.schema
	for _, step := range field {
		child, found := s.Properties[step.Key]
		switch {
		case step.IsIndex && s.Items != nil:
			s = s.Items
		case found:
			s = &child
		case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
			s = s.AdditionalProperties.Structural
		default:
			return nil
		}
	}
	return s
}

// find returns the kind of an object. If Akri has no such kind, wrong is the field to
// correct, and hint the value that it should have; wrong is empty if the object is not
// meant to be Akri's.
func find(object map[string]any) (k *kind, wrong, hint string) {
	name, _ := object["kind"].(string)
	apiVersion, hasVersion := object["apiVersion"].(string)
	var known []string
	for i := range kinds() {
		if k := &kinds()[i]; k.name == name && k.apiVersion == apiVersion {
			return k, "", ""
		}
		known = append(known, kinds()[i].name)
	}
	version := kinds()[0].apiVersion
	isOurs := strings.HasPrefix(apiVersion, path.Dir(version)+"/")
	switch isKnown := slices.Contains(known, name); {
	case isOurs && !isKnown:
		return nil, "kind", cmp.Or(text.Nearest(name, known), known[0])
	case isKnown && (isOurs || !hasVersion || text.Nearest(apiVersion, []string{version}) != ""):
		return nil, "apiVersion", version
	}
	return nil, "", ""
}
