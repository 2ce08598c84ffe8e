package templates

import (
	"fmt"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// displayNamePlace is where the template of display names is written.
const displayNamePlace = "spec.displayName"

// maxDisplayName is the size of display names in bytes.
const maxDisplayName = 128

// compileDisplayName compiles the template of display names. Texts are compiled and rendered
// as parts of objects, and so is this one.
func (t *Templates) compileDisplayName(template string) {
	if template == "" {
		return
	}
	set, diagnostics := templating.Compile(templating.InstanceLevel, []map[string]any{{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "display-name"},
		"data": map[string]any{"text": template},
	}})
	for _, diagnostic := range diagnostics {
		diagnostic.Field = nil
		t.Problems = append(t.Problems, &problem.Error{Mistake: diagnostic.In(displayNamePlace).Quoting(), Reason: v0.ReasonInvalidTemplate})
	}
	t.display = set
}

// DisplayName returns what people call the device of an Instance: by the Configuration, or
// else by the discovery handler, if it says so or the device lacks a property for the template.
func (t *Templates) DisplayName(configuration *v0.Configuration, instance *v0.Instance) string {
	name := instance.Spec.BrokerProperties[v0.PropertyDisplayName]
	if t.display != nil && len(t.Problems) == 0 {
		objects, _ := t.display.Render(InstanceValues(configuration, instance))
		for _, object := range objects {
			name = fmt.Sprint(templating.Keys("data", "text").Lookup(object.Content))
		}
	}
	return text.Truncate(text.OneLine(name), maxDisplayName)
}
