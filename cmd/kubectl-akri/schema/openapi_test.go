package schema

import (
	"encoding/json"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/config/crd"
)

// openAPI returns a reference validator of the definition. It returns why an object is
// rejected, or "".
func openAPI(t *testing.T) func(map[string]any) string {
	t.Helper()
	var d struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	var schema spec.Schema
	err := yaml.Unmarshal(crd.Configurations, &d)
	if err == nil {
		err = json.Unmarshal(d.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	validator := validate.NewSchemaValidator(&schema, nil, "", strfmt.Default)
	return func(object map[string]any) string {
		result := validator.Validate(object)
		if result.IsValid() {
			return ""
		}
		return result.AsError().Error()
	}
}
