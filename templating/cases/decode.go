package cases

import (
	"encoding/json"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/convert"
)

// configuration is the part of a Configuration that rendering depends on.
type configuration struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Capacity         int64             `json:"capacity"`
		BrokerProperties map[string]string `json:"brokerProperties"`
		SampleProperties map[string]string `json:"sampleProperties"`
		convert.Fields                     // also those of brokerSpec
	} `json:"spec"`
}

// instance is the part of an Instance that templates can read.
type instance struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		BrokerProperties map[string]string `json:"brokerProperties"`
		Nodes            []string          `json:"nodes"`
		Shared           bool              `json:"shared"`
	} `json:"spec"`
}

// decode leaves out fields of a wrong type, which the check of the schema reports.
func decode(object, into any) {
	if data, err := json.Marshal(object); err == nil {
		_ = json.Unmarshal(data, into) // goes on after such a field
	}
}

// templatesOf returns the templates of a list as the document has them: whole numbers stay
// whole. An element that is not an object is nil.
func templatesOf(spec map[string]any, level templating.Level) []map[string]any {
	elements, _ := spec[level.String()].([]any)
	templates := make([]map[string]any, len(elements))
	for i, element := range elements {
		templates[i], _ = element.(map[string]any)
	}
	return templates
}
