package webhook

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// checkTemplates returns the compiled templates, and a finding for each error that does not
// depend on the device.
func checkTemplates(configuration *v0.Configuration, policy confine.Policy) (*templates.Templates, []Finding) {
	compiled := templates.Compile(configuration, policy)
	var findings []Finding
	for _, found := range compiled.Problems {
		findings = append(findings, denial(found))
	}
	return compiled, findings
}
