package templates

import (
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// compileDisplayName compiles the template of display names.
func (t *Templates) compileDisplayName(template string) {
	if template == "" {
		return
	}
	compiled, diagnostics := templating.CompileText(template)
	for _, diagnostic := range diagnostics {
		mistake := diagnostic.In("spec.displayName").Quoting()
		t.Problems = append(t.Problems, &problem.Error{Mistake: mistake, Reason: v0.ReasonInvalidTemplate})
	}
	t.display = compiled
}

// DisplayName returns what people call the device of an Instance: by the Configuration, or
// else, also if the device lacks a property for that or it is empty, by the discovery handler.
func (t *Templates) DisplayName(configuration *v0.Configuration, instance *v0.Instance) string {
	name := instance.Spec.BrokerProperties[v0.PropertyDisplayName]
	if t.display != nil && len(t.Problems) == 0 {
		if rendered, ok := t.display.Render(InstanceValues(configuration, instance)); ok && strings.TrimSpace(rendered) != "" {
			name = rendered
		}
	}
	return text.Truncate(text.OneLine(name), v0.MaxDisplayNameLength)
}
