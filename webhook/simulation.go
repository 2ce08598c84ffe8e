package webhook

import (
	"context"
	"encoding/json"
	"errors"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// rendering is a candidate with what it renders for made-up devices.
type rendering struct {
	*candidate
	// alternatives has one object per guess. The template is valid if the API
	// server accepts one of them.
	alternatives []templating.Object
}

// render renders the templates for made-up devices. It denies what may never be
// rendered, what fails for every guess, what differs between two renderings for the
// same device, and objects that two devices or two templates would both own.
func (c *Chain) render(
	ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, candidates []*candidate, devices devices,
) ([]rendering, []Finding) {
	var findings []Finding
	for _, candidate := range candidates {
		findings = append(findings, confined(c.policy, configuration, candidate, candidate.template)...)
	}
	simulation, ok := simulate(ctx, configuration, compiled, devices)
	if !ok {
		return nil, append(findings, Finding{
			Level: Deny, Place: "spec",
			Cause:  "the templates take too long to render, even for one device",
			Remedy: "use fewer or shorter loops",
		})
	}
	renderings := make([]rendering, 0, len(candidates))
	for _, candidate := range candidates {
		alternatives, denials := simulation.evaluate(candidate)
		if len(denials) == 0 {
			for _, object := range alternatives[:min(1, len(alternatives))] {
				denials = append(denials, confined(c.policy, configuration, candidate, object.Content)...)
			}
		}
		findings = append(findings, denials...)
		renderings = append(renderings, rendering{candidate, alternatives})
	}
	return renderings, findings
}

// confined checks a template, or an object that it renders, against the policy.
func confined(policy confine.Policy, configuration *v0.Configuration, candidate *candidate, content map[string]any) []Finding {
	if content == nil {
		return nil
	}
	err := policy.Object(confine.ObjectOf(candidate.kind, candidate.namespaced(), content), configuration.Namespace)
	refused, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return nil
	}
	return []Finding{{Level: Deny, Place: candidate.place, Cause: refused.Cause, Remedy: refused.Hint}}
}

// simulation has everything that the checks compare.
type simulation struct {
	compiled *templates.Templates
	devices  devices
	rounds   []round
	// repeated is the first and the group of the first round, rendered again.
	repeated struct{ first, group rendered }
}

// round is what the templates render with one guess.
type round struct {
	first, second, shared rendered // at instance level, for three devices
	group                 rendered // at configuration level
}

// rendered is the result of rendering a list of templates.
type rendered struct {
	objects     []templating.Object
	diagnostics templating.Diagnostics
}

// simulate renders the templates with each guess. It returns false if there was no
// time for even one round: templating limits the cost of a template, but not to
// what a review may take.
func simulate(ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, devices devices) (*simulation, bool) {
	s := &simulation{compiled: compiled, devices: devices}
	values := templating.Values{
		Configuration: configuration.Name,
		Namespace:     configuration.Namespace,
		Capacity:      int64(max(configuration.Spec.Capacity, 1)),
	}
	render := func(device templating.Instance) rendered {
		values := values
		values.Instance = device
		objects, diagnostics := compiled.Instance.Render(values)
		return rendered{objects, diagnostics}
	}
	renderGroup := func(members ...templating.Instance) rendered {
		values := values
		values.Instances = members
		objects, diagnostics := compiled.Group.Render(values)
		return rendered{objects, diagnostics}
	}
	for i, invent := range guesses {
		if i > 0 && (len(devices.guessed) == 0 || ctx.Err() != nil) {
			break // nothing to guess, or no time left
		}
		first, second := devices.device(0, invent, false), devices.device(1, invent, false)
		current := round{first: render(first)}
		if ctx.Err() != nil {
			break
		}
		current.second = render(second)
		current.shared = render(devices.device(0, invent, true))
		current.group = renderGroup(first, second)
		if i == 0 {
			s.repeated.first, s.repeated.group = render(first), renderGroup(first, second)
		}
		s.rounds = append(s.rounds, current)
	}
	return s, len(s.rounds) > 0
}

// objectsOf returns the objects of one template.
func (r rendered) objectsOf(candidate *candidate) []templating.Object {
	var objects []templating.Object
	for _, object := range r.objects {
		if object.Origin.Level == candidate.level && object.Origin.Index == candidate.index {
			objects = append(objects, object)
		}
	}
	return objects
}

// canonical returns the content of an object as bytes that can be compared.
func canonical(object templating.Object) []byte {
	encoded, err := json.Marshal(object.Content) // sorts the keys of maps
	if err != nil {
		return []byte(err.Error())
	}
	return encoded
}
