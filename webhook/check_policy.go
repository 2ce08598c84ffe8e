package webhook

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

// checkPolicy checks the templates against the policy, as they are written. What they render is
// checked before its dry run, as the controller does it.
func (c *Chain) checkPolicy(configuration *v0.Configuration, candidates []*candidate) []Finding {
	var findings []Finding
	for _, tmpl := range candidates {
		if tmpl.source == nil { // one of Akri's old fields
			continue
		}
		conflict := templating.OnConflictOf(tmpl.source)
		if err := c.policy.Object(tmpl.kind, tmpl.namespaced(), tmpl.source, conflict, configuration.Namespace); err != nil {
			findings = append(findings, denial(problem.At(tmpl.place, err)))
		}
	}
	return findings
}
