package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// renderedTemplate is a candidate with the objects it renders for made-up devices.
type renderedTemplate struct {
	*candidate
	// alternatives has one object per guess. The template is valid if the API
	// server accepts one of them.
	alternatives []templating.Object
}

// render renders the templates for made-up devices. It denies objects that may never
// be rendered, templates that fail for every guess or render different objects for
// the same device, and objects that two devices or two templates would both own.
func (c *Chain) render(
	ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, candidates []*candidate, devices deviceFactory,
) ([]renderedTemplate, []Finding) {
	var findings []Finding
	for _, tmpl := range candidates {
		findings = append(findings, confined(c.policy, configuration, tmpl, tmpl.source)...)
	}
	sim := simulate(ctx, configuration, compiled, devices)
	renderings := make([]renderedTemplate, 0, len(candidates))
	for _, tmpl := range candidates {
		alternatives, rejected := sim.evaluate(tmpl)
		if len(rejected) == 0 {
			for _, object := range alternatives[:min(1, len(alternatives))] {
				rejected = append(rejected, confined(c.policy, configuration, tmpl, object.Content)...)
			}
		}
		findings = append(findings, rejected...)
		renderings = append(renderings, renderedTemplate{tmpl, alternatives})
	}
	if sim.incomplete && !denied(findings) {
		findings = append(findings, Finding{
			Level: Deny, Place: "spec",
			Cause:  "the templates take too long to render, even for one device",
			Remedy: "use fewer or shorter loops",
		})
	}
	return renderings, findings
}

// confined checks a template, or an object that it renders, against the policy.
func confined(policy confine.Policy, configuration *v0.Configuration, tmpl *candidate, content map[string]any) []Finding {
	if content == nil {
		return nil
	}
	err := policy.Object(confine.ObjectOf(tmpl.kind, tmpl.namespaced(), content), configuration.Namespace)
	refused, ok := errors.AsType[*problem.Error](err)
	if !ok {
		return nil
	}
	return []Finding{{Level: Deny, Place: tmpl.place, Cause: refused.Cause, Remedy: refused.Hint}}
}

// simulation holds the renderings that the checks compare.
type simulation struct {
	compiled *templates.Templates
	devices  deviceFactory
	rounds   []guessRound
	// incomplete is set if there was no time to complete even one round. Then the
	// only round has nothing but the first device.
	incomplete bool
	// repeated is the first and the group of the first round, rendered again.
	repeated struct{ first, group output }
}

// guessRound holds the renderings with one guess.
type guessRound struct {
	first, second, shared output // at instance level, for three devices
	group                 output // at configuration level
}

// output is the result of rendering a list of templates.
type output struct {
	objects     []templating.Object
	diagnostics templating.Diagnostics
}

// simulate renders the templates with each guess while there is time: templating
// limits the cost of each template, but many templates may cost more than a review
// may take.
func simulate(
	ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, devices deviceFactory,
) *simulation {
	s := &simulation{compiled: compiled, devices: devices}
	values := templating.Values{
		Configuration: configuration.Name,
		Namespace:     configuration.Namespace,
		Capacity:      int64(max(configuration.Spec.Capacity, 1)),
	}
	render := func(device templating.Instance) output {
		values := values
		values.Instance = device
		objects, diagnostics := compiled.Instance.Render(values)
		return output{objects, diagnostics}
	}
	renderGroup := func(members ...templating.Instance) output {
		values := values
		values.Instances = members
		objects, diagnostics := compiled.Group.Render(values)
		return output{objects, diagnostics}
	}
	for i, invent := range guesses {
		if i > 0 && (len(devices.guessed) == 0 || ctx.Err() != nil) {
			break // nothing to guess, or no time left
		}
		first, second := devices.device(0, invent, false), devices.device(1, invent, false)
		began := time.Now()
		current := guessRound{first: render(first)}
		// The rest of the first round renders the same templates three more times.
		if rest := 3 * time.Since(began); !timeFor(ctx, rest) {
			if i == 0 {
				s.rounds, s.incomplete = []guessRound{current}, true
			}
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
	return s
}

// timeFor reports whether the deadline of ctx is more than d away.
func timeFor(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > d)
}

// objectsOf returns the objects of one template.
func (o output) objectsOf(tmpl *candidate) []templating.Object {
	var objects []templating.Object
	for _, object := range o.objects {
		if object.Origin.Level == tmpl.level && object.Origin.Index == tmpl.index {
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
