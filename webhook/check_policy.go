package webhook

import (
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/templating"
)

// checkPolicy checks the templates against the policy, as they are written.
func (c *Chain) checkPolicy(configuration *v0.Configuration, candidates []*candidate) []Finding {
	var findings []Finding
	for _, tmpl := range candidates {
		findings = append(findings, confined(c.policy, configuration, tmpl, tmpl.source, templating.OnConflictOf(tmpl.source))...)
	}
	return findings
}

// confined checks a template, or an object that it renders, against the policy.
func confined(
	policy confine.Policy, configuration *v0.Configuration, tmpl *candidate, content map[string]any, conflict templating.OnConflict,
) []Finding {
	if content == nil {
		return nil
	}
	err := policy.Object(confine.ObjectOf(tmpl.kind, tmpl.namespaced(), content, conflict), configuration.Namespace)
	if err == nil {
		return nil
	}
	return []Finding{denial(problem.At(tmpl.place, err))}
}
