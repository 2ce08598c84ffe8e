package webhook

import (
	"strings"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// compile returns the compiled templates, and a finding for each error that does not
// depend on the device.
func compile(configuration *v0.Configuration, policy confine.Policy) (*templates.Templates, []Finding) {
	compiled := templates.Compile(configuration, policy)
	var findings []Finding
	for _, problem := range compiled.Problems {
		findings = append(findings, Finding{Level: Deny, Cause: inSpec(problem.Message)})
	}
	return compiled, findings
}

// inSpec prefixes a place in a spec to make it a place in the Configuration.
func inSpec(place string) string {
	if strings.HasPrefix(place, "spec.") {
		return place
	}
	return "spec." + place
}
