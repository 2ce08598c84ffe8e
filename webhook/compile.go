package webhook

import (
	"context"
	"strings"

	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// compiler tells everything that is wrong with the templates before a device is
// known.
type compiler struct {
	policy confine.Policy
}

func (c compiler) look(_ context.Context, r *review) []Finding {
	r.compiled = templates.Compile(r.configuration, c.policy)
	var findings []Finding
	for _, problem := range r.compiled.Problems {
		findings = append(findings, Finding{Level: Deny, Cause: inSpec(problem.Message)})
	}
	return findings
}

// inSpec is a place in a Configuration from its root on.
func inSpec(place string) string {
	if strings.HasPrefix(place, "spec.") {
		return place
	}
	return "spec." + place
}
