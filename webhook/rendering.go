package webhook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// renderedTemplate is a candidate with the objects it renders for made-up devices.
type renderedTemplate struct {
	*candidate
	// alternatives has one object per guess. The template is valid if the API
	// server accepts one of them.
	alternatives []outline
}

// checkRendering renders the templates for made-up devices. It denies objects that may never
// be rendered, templates that fail for every guess or render different objects for
// the same device, and objects that two devices or two templates would both own. It warns
// of objects that will not work as expected, alone or together.
func (c *Chain) checkRendering(
	ctx context.Context, r admissionRequest, compiled *templates.Templates, candidates []*candidate, devices deviceFactory,
) ([]renderedTemplate, []Finding) {
	var findings []Finding
	release, err := c.reserve(ctx, r, renderingBytes)
	if err != nil {
		return nil, []Finding{tooBusy(err)}
	}
	defer release()
	var advised []Finding
	warned := map[string]bool{}
	advise := func(warnings templating.Diagnostics) {
		for _, warning := range warnings {
			mistake := warning.In("").Mistake
			// One warning for a field is enough, with whatever devices it is rendered.
			mistake.Path = candidateOf(candidates, warning.Origin.Level, warning.Origin.Index).field(mistake.Path)
			if !warned[mistake.Path] {
				warned[mistake.Path] = true
				advised = append(advised, Finding{Warn, mistake})
			}
		}
	}
	judge := func(object templating.Object, values templating.Values) (advice.Member, []Finding) {
		tmpl := candidateOf(candidates, object.Origin.Level, object.Origin.Index)
		member, warnings := advice.Of(tmpl.source, object, values)
		advise(warnings)
		return member, confined(c.policy, r.configuration, tmpl, object.Content, object.Directives.OnConflict)
	}
	var sim *simulation
	err = c.compute(ctx, r, func(pass func() bool) {
		sim = simulate(ctx, r.configuration, compiled, devices, judge, pass)
		for _, round := range sim.rounds {
			advise(round.together())
		}
	})
	if err != nil {
		return nil, []Finding{tooBusy(err)}
	}
	renderings := make([]renderedTemplate, 0, len(candidates))
	for _, tmpl := range candidates {
		alternatives, rejected := sim.evaluate(tmpl)
		if len(rejected) == 0 && len(alternatives) > 0 {
			rejected = alternatives[0].refused
		}
		findings = append(findings, rejected...)
		renderings = append(renderings, renderedTemplate{tmpl, alternatives})
	}
	if sim.incomplete && !denied(findings) {
		findings = append(findings, Finding{Deny, finding.Mistake{
			Path:  "spec",
			Cause: "the templates take too long to render, even for one device",
			Hint:  "use fewer or shorter loops",
		}})
	}
	return renderings, append(findings, advised...)
}

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

// simulation holds the outlines of the renderings that the checks compare.
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

// together returns the warnings about what the objects of a round do to each other. If some are
// missing, they might select others or be selected.
func (r guessRound) together() templating.Diagnostics {
	var members []advice.Member
	for _, list := range []output{r.first, r.second, r.shared, r.group} {
		if members = append(members, list.members...); len(list.diagnostics) > 0 || len(list.members) < len(list.objects) {
			return nil
		}
	}
	return advice.Together(members)
}

// output is the result of rendering a list of templates.
type output struct {
	objects     []outline
	members     []advice.Member // if they take no more than heldBytes
	diagnostics templating.Diagnostics
}

// simulate renders the templates with each guess while there is time: templating
// limits the cost of each template, but many templates may cost more than a review
// may take. It holds one object at a time, and others if they are small. judge
// returns the findings about an object that must not be rendered. After each template, pass
// lets others compute.
func simulate(
	ctx context.Context, configuration *v0.Configuration, compiled *templates.Templates, devices deviceFactory,
	judge func(templating.Object, templating.Values) (advice.Member, []Finding), pass func() bool,
) *simulation {
	s := &simulation{compiled: compiled, devices: devices}
	rendered := false // the first list
	base := templating.Values{
		Configuration: configuration.Name,
		Namespace:     configuration.Namespace,
		Capacity:      int64(max(configuration.Spec.Capacity, 1)),
	}
	// The first list is rendered in any case: its mistakes are worth knowing.
	stop := func() bool { return ctx.Err() != nil && rendered || !pass() }
	renderList := func(set *templating.Set, values templating.Values) output {
		var list output
		var held int64
		list.diagnostics = set.Each(values, func(object templating.Object) {
			one := outlineOf(object, &values)
			var member advice.Member
			member, one.refused = judge(object, values)
			list.objects = append(list.objects, one)
			if held += object.Allocated; held <= heldBytes {
				list.members = append(list.members, member)
			}
		}, stop)
		rendered = true
		return list
	}
	render := func(device templating.Instance) output {
		values := base
		values.Instance = device
		return renderList(compiled.Instance, values)
	}
	renderGroup := func(members ...templating.Instance) output {
		values := base
		values.Instances = members
		return renderList(compiled.Group, values)
	}
	for i, valueOf := range guesses {
		if i > 0 && (len(devices.guessed) == 0 || ctx.Err() != nil) {
			break // nothing to guess, or no time left
		}
		first, second := devices.device(0, valueOf, false), devices.device(1, valueOf, false)
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
		current.shared = render(devices.device(0, valueOf, true))
		current.group = renderGroup(first, second)
		if i == 0 {
			s.repeated.first, s.repeated.group = render(first), renderGroup(first, second)
		}
		if stop() { // nothing after that is complete
			if i == 0 {
				s.rounds, s.incomplete = []guessRound{{first: current.first}}, true
			}
			break
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
func (o output) objectsOf(tmpl *candidate) []outline {
	var objects []outline
	for _, object := range o.objects {
		if object.origin.Level == tmpl.level && object.origin.Index == tmpl.index {
			objects = append(objects, object)
		}
	}
	return objects
}

// evaluate returns the alternatives of a template, and the findings about it.
func (s *simulation) evaluate(tmpl *candidate) (alternatives []outline, findings []Finding) {
	var failure templating.Diagnostics
	collisions, successes := 0, 0
	var collision string
	for _, round := range s.rounds {
		rendered := round.first
		if tmpl.level == templating.ConfigurationLevel {
			rendered = round.group
		}
		if diagnostics := rendered.diagnostics.Of(tmpl.level, tmpl.index); len(diagnostics) > 0 {
			if failure == nil {
				failure = diagnostics
			}
			continue
		}
		successes++
		objects := rendered.objectsOf(tmpl)
		if message, found := round.collision(tmpl, objects, s.devices.observed); found {
			collisions, collision = collisions+1, message
		}
		if len(objects) == 0 && tmpl.level == templating.InstanceLevel {
			// The template's condition requires another device.
			objects = append(round.shared.objectsOf(tmpl), round.second.objectsOf(tmpl)...)
		}
		alternatives = append(alternatives, objects[:min(1, len(objects))]...)
	}
	switch {
	case successes == 0:
		return alternatives, s.failed(tmpl, failure)
	case s.incomplete:
		return alternatives, nil // there is nothing to compare with
	case collisions == successes:
		return alternatives, []Finding{{Deny, finding.Mistake{
			Path: tmpl.field("metadata.name"), Cause: collision, Hint: "use different names",
		}}}
	case s.unstable(tmpl):
		return alternatives, []Finding{{Deny, finding.Mistake{
			Path:  tmpl.place,
			Cause: "two renderings for the same device give different objects",
			Hint:  "please report this as a bug",
		}}}
	}
	return alternatives, nil
}

// failed returns the findings for a template that fails for every guess.
func (s *simulation) failed(tmpl *candidate, diagnostics templating.Diagnostics) []Finding {
	var findings []Finding
	for i, err := range s.compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		found := denial(err)
		if s.devices.guesses(tmpl.source) && !errors.Is(diagnostics[i], templating.ErrLimit) {
			found.Hint = strings.TrimPrefix(found.Hint+"; "+sampleHint, "; ")
		}
		findings = append(findings, found)
	}
	return findings
}

// unstable reports whether the second rendering for the same device differs from
// the first.
func (s *simulation) unstable(tmpl *candidate) bool {
	first, second := s.rounds[0].first, s.repeated.first
	if tmpl.level == templating.ConfigurationLevel {
		first, second = s.rounds[0].group, s.repeated.group
	}
	return !slices.EqualFunc(first.objectsOf(tmpl), second.objectsOf(tmpl), func(a, b outline) bool {
		return a.digest == b.digest
	})
}
