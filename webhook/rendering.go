package webhook

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// heldBytes is the memory, in bytes, that the objects of one list may hold until their dry
// runs. It is far more than a spec of maxSpecBytes usually renders to, but templates may produce
// texts that are much larger than they are.
const heldBytes = 4 << 20

// objectReview is a review from where templates are rendered: what the checks of rendered
// objects share.
type objectReview struct {
	*Chain
	r          admissionRequest
	compiled   *templates.Templates
	candidates []*candidate
	devices    deviceFactory
	client     *apply.Client
	// advised are the fields of templates that have a warning: one is enough, with whatever
	// devices the template is rendered.
	advised  map[string]bool
	warnings []Finding
}

// newObjectReview returns a review of templates, given the properties of an existing device.
func (c *Chain) newObjectReview(
	r admissionRequest, compiled *templates.Templates, candidates []*candidate, existing map[string]string,
) (*objectReview, error) {
	client, err := c.client(r.configuration)
	return &objectReview{
		Chain: c, r: r, compiled: compiled, candidates: candidates, devices: newDeviceFactory(r.configuration, compiled, existing),
		client: client, advised: map[string]bool{},
	}, err
}

// rendered is an object that was rendered for a made-up device.
type rendered struct {
	advice.Member // without its content if it is not held
	ref           inventory.Ref
	// refused is set if the object must not be rendered.
	refused []Finding
}

func (o rendered) held() bool { return o.Content != nil }

// output is what a list of templates renders to.
type output struct {
	objects     []rendered
	diagnostics templating.Diagnostics
}

// objectsOf returns the objects of one template.
func (o output) objectsOf(tmpl *candidate) []rendered {
	var objects []rendered
	for _, object := range o.objects {
		if object.Origin.Level == tmpl.level && object.Origin.Index == tmpl.index {
			objects = append(objects, object)
		}
	}
	return objects
}

// round is what the templates render to with one guess.
type round struct {
	first, second, shared output // at instance level, for three devices
	group                 output // at configuration level
}

// of returns the objects of a template, and its errors.
func (r round) of(tmpl *candidate) ([]rendered, templating.Diagnostics) {
	list := r.first
	if tmpl.level == templating.ConfigurationLevel {
		list = r.group
	}
	return list.objectsOf(tmpl), list.diagnostics.Of(tmpl.level, tmpl.index)
}

// together returns the warnings about what the objects of a round do to each other. If some are
// missing, they might select others or be selected.
func (r round) together() templating.Diagnostics {
	var members []advice.Member
	for _, list := range []output{r.first, r.second, r.shared, r.group} {
		if len(list.diagnostics) > 0 {
			return nil
		}
		for _, object := range list.objects {
			if !object.held() {
				return nil
			}
			members = append(members, object.Member)
		}
	}
	return advice.Together(members)
}

// refs returns the objects that the templates render.
func (r round) refs() []inventory.Ref {
	var refs []inventory.Ref
	for _, list := range []output{r.first, r.second, r.shared, r.group} {
		for _, object := range list.objects {
			refs = append(refs, object.ref)
		}
	}
	return refs
}

// render renders the templates with a guess while there is time: templating limits the cost of
// each template, but many templates may cost more than a review may take. The first list is
// rendered in any case, because its mistakes are worth knowing.
func (o *objectReview) render(ctx context.Context, guess sampleValue) round {
	first, second := o.devices.device(0, guess, false), o.devices.device(1, guess, false)
	late := func() bool { return ctx.Err() != nil }
	base := templating.Values{
		Configuration: o.r.configuration.Name,
		Namespace:     o.r.configuration.Namespace,
		Capacity:      int64(max(o.r.configuration.Spec.Capacity, 1)),
	}
	instance := func(device templating.Instance, stop func() bool) output {
		values := base
		values.Instance = device
		return o.renderList(o.compiled.Instance, values, stop)
	}
	result := round{first: instance(first, nil), second: instance(second, late)}
	result.shared = instance(o.devices.device(0, guess, true), late)
	base.Instances = []templating.Instance{first, second}
	result.group = o.renderList(o.compiled.Group, base, late)
	o.advise(result.together())
	return result
}

// renderList renders the templates of a list, checks each object, and holds as many as it may.
func (o *objectReview) renderList(set *templating.Set, values templating.Values, stop func() bool) output {
	var list output
	var held int64
	list.diagnostics = set.Each(values, func(object templating.Object) {
		tmpl := candidateOf(o.candidates, object.Origin.Level, object.Origin.Index)
		member, warnings := advice.Of(tmpl.source, object, values)
		o.advise(warnings)
		one := rendered{
			Member: member, ref: inventory.RefOfObject(&unstructured.Unstructured{Object: object.Content}),
			refused: confined(o.policy, o.r.configuration, tmpl, object.Content, object.Directives.OnConflict),
		}
		if held += object.Allocated; held > heldBytes {
			object.Content = nil
			one.Member = advice.Member{Object: object}
		}
		list.objects = append(list.objects, one)
	}, stop)
	return list
}

// advise adds warnings about objects that will not work as expected, alone or together.
func (o *objectReview) advise(warnings templating.Diagnostics) {
	for _, warning := range warnings {
		mistake := warning.In("").Mistake
		mistake.Path = candidateOf(o.candidates, warning.Origin.Level, warning.Origin.Index).field(mistake.Path)
		if !o.advised[mistake.Path] {
			o.advised[mistake.Path] = true
			o.warnings = append(o.warnings, Finding{Warn, mistake})
		}
	}
}

// choose returns the object of a template that is tried, nil if there is none, or what is wrong
// with the template's objects.
func (o *objectReview) choose(all round, tmpl *candidate) (*rendered, []Finding) {
	objects, diagnostics := all.of(tmpl)
	if len(diagnostics) > 0 {
		return nil, o.failed(tmpl, diagnostics)
	}
	if message, found := all.collision(tmpl, objects, o.devices.observed); found {
		return nil, []Finding{{Deny, finding.Mistake{Path: tmpl.field("metadata.name"), Cause: message, Hint: "use different names"}}}
	}
	if len(objects) == 0 && tmpl.level == templating.InstanceLevel {
		// The template's condition requires another device.
		objects = append(all.shared.objectsOf(tmpl), all.second.objectsOf(tmpl)...)
	}
	for _, object := range objects {
		if len(object.refused) > 0 {
			return nil, object.refused
		}
	}
	if len(objects) == 0 {
		return nil, nil
	}
	return &objects[0], nil
}

// failed returns the findings for a template that fails.
func (o *objectReview) failed(tmpl *candidate, diagnostics templating.Diagnostics) []Finding {
	var findings []Finding
	for i, err := range o.compiled.Diagnosed(v0.ReasonRenderFailed, diagnostics) {
		found := denial(err)
		if o.devices.guesses(tmpl.source) && !errors.Is(diagnostics[i], templating.ErrLimit) {
			found.Hint = strings.TrimPrefix(found.Hint+"; "+sampleHint, "; ")
		}
		findings = append(findings, found)
	}
	return findings
}

// tooSlow returns the findings if there was no time to render the templates with the first guess.
func (o *objectReview) tooSlow(first round) []Finding {
	var findings []Finding
	for _, tmpl := range o.candidates {
		findings = append(findings, o.failed(tmpl, first.first.diagnostics.Of(tmpl.level, tmpl.index))...)
	}
	if len(findings) == 0 {
		findings = []Finding{{Deny, finding.Mistake{
			Path: "spec", Cause: "the templates take too long to render, even for one device", Hint: "use fewer or shorter loops",
		}}}
	}
	return findings
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
