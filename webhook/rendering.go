package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"akri.sh/akri/controller/advice"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
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
) *objectReview {
	return &objectReview{
		Chain: c, r: r, compiled: compiled, candidates: candidates, devices: newDeviceFactory(r.configuration, compiled, existing),
		client: c.client(r.configuration), advised: map[string]bool{},
	}
}

// rendered is an object that was rendered for a made-up device.
type rendered struct {
	advice.Member // without its content if it is not held
	ref           inventory.Ref
	problem       *problem.Error // of an object that is not held: why the controller would not apply it
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

// render renders the templates with a guess while there is time: templating limits the cost of
// each template, but many templates may cost more than a review may take. The first list is
// rendered in any case, because its mistakes are worth knowing.
func (o *objectReview) render(ctx context.Context, guess sampleValue) round {
	first, second := o.devices.device(0, guess, false), o.devices.device(1, guess, false)
	o.devices.siblings = nil
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

// renderList renders the templates of a list, and holds as many objects as it may.
func (o *objectReview) renderList(set *templating.Set, values templating.Values, stop func() bool) output {
	var list output
	var held int64
	list.diagnostics = set.Each(values, func(object templating.Object) {
		tmpl := candidateOf(o.candidates, object.Origin.Level, object.Origin.Index)
		member, warnings := advice.Of(tmpl.source, object, values)
		o.advise(warnings)
		one := rendered{Member: member, ref: inventory.RefOfObject(&unstructured.Unstructured{Object: object.Content})}
		if held += object.Allocated; held > heldBytes {
			one.problem = o.judge(object)
			object.Content = nil
			one.Member = advice.Member{Object: object}
		}
		list.objects = append(list.objects, one)
		o.devices.siblings = append(o.devices.siblings, one.ref)
	}, stop)
	return list
}

// judge returns why the controller would not apply an object, such as the policy; nil if it would.
func (o *objectReview) judge(object templating.Object) *problem.Error {
	parent := parentOf(o.r.configuration, object.Origin.Level)
	if _, problems := plan.Desire(o.mapper, o.policy, parent, []templating.Object{object}, o.compiled.Place); len(problems) > 0 {
		return problems[0]
	}
	return nil
}
