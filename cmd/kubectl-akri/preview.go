package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// preview renders, plans and applies a Configuration as the controller does, with dry
// runs only.
type preview struct {
	cluster       *cluster
	configuration *v0.Configuration
	compiled      *templates.Templates
	policy        confine.Policy
	sample        bool // the devices are sample devices
	// managed holds the objects with the label of the controller, by resource.
	managed map[schema.GroupVersionResource][]unstructured.Unstructured
}

// newPreview returns a preview. The requests of c must go through [apply.DryRunOnly].
func newPreview(c *cluster, configuration *v0.Configuration, policy confine.Policy) *preview {
	return &preview{
		cluster: c, configuration: configuration, compiled: templates.Compile(configuration, policy), policy: policy,
		managed: map[schema.GroupVersionResource][]unstructured.Unstructured{},
	}
}

// previewed is a parent with its rendered objects.
type previewed struct {
	ownership.Parent
	objects     []templating.Object
	diagnostics templating.Diagnostics
	recorded    []v0.ResourceStatus
}

// all returns the changes to the objects of the Instances and of the Configuration.
func (p *preview) all(ctx context.Context, instances []v0.Instance) ([]view.Changes, error) {
	group := previewed{Parent: ownership.ConfigurationParent(p.configuration), recorded: p.configuration.Status.Resources}
	if len(p.compiled.Problems) > 0 {
		return []view.Changes{{Parent: group.String(), Problems: messages(p.compiled.Problems)}}, nil
	}
	var parents []previewed
	for i := range instances {
		instance := &instances[i]
		parent := previewed{Parent: ownership.InstanceParent(instance), recorded: instance.Status.Resources}
		parent.objects, parent.diagnostics = p.compiled.Instance.Render(templates.InstanceValues(p.configuration, instance))
		parents = append(parents, parent)
	}
	if len(instances) > 0 { // configurationBrokerResources exist only while there is a device
		group.objects, group.diagnostics = p.compiled.Group.Render(templates.GroupValues(p.configuration, instances))
	}
	var all []view.Changes
	for _, parent := range append(parents, group) {
		changes, err := p.changes(ctx, parent)
		if err != nil {
			return nil, err
		}
		all = append(all, changes)
	}
	return all, nil
}

// changes returns the changes to the objects of one parent.
func (p *preview) changes(ctx context.Context, parent previewed) (view.Changes, error) {
	result := view.Changes{Parent: parent.String(), Sample: p.sample}
	problems := p.compiled.Diagnosed(v0.ReasonRenderFailed, parent.diagnostics)
	desired, refusals := plan.Desire(p.cluster.mapper, p.policy, parent.Parent, parent.objects, p.compiled.Place)
	problems = append(problems, refusals...)
	live, err := p.live(ctx, parent, desired)
	if err != nil {
		return result, err
	}
	observed := make(map[inventory.Ref]plan.Observed, len(live))
	for ref, object := range live {
		observed[ref] = informers.Trim(object).Observed
	}
	result.Problems = messages(problems)
	steps := plan.Compute(plan.Input{
		Parent: parent.Parent, Desired: desired, Observed: observed, Recorded: parent.recorded,
		Complete:          len(problems) == 0,
		ReplaceTerminated: true, // the controller replaces them after its back-off
	})
	rejected := false
	for _, step := range steps {
		resource, found := p.resource(step)
		if !found {
			continue // the kind no longer exists, nor do its objects
		}
		change, err := p.change(ctx, parent, step, resource, live[step.Ref])
		if err != nil {
			return result, err
		}
		if change == nil {
			continue
		}
		rejected = rejected || change.Verb == view.Rejected
		if change.Verb == view.Deleted && rejected {
			change.Verb, change.Why, change.After = view.Waiting, "to be deleted once all of the above is applied", change.Before
		}
		result.Objects = append(result.Objects, *change)
	}
	return result, nil
}

// live returns the existing objects of a parent: those with its labels, and those that
// are desired.
func (p *preview) live(ctx context.Context, parent previewed, desired []plan.Desired) (map[inventory.Ref]*unstructured.Unstructured,
	error) {
	live := map[inventory.Ref]*unstructured.Unstructured{}
	add := func(resource schema.GroupVersionResource, namespaced bool) error {
		objects, err := p.ofResource(ctx, resource, namespaced)
		for i := range objects {
			ref := inventory.RefOfObject(&objects[i])
			isDesired := slices.ContainsFunc(desired, func(d plan.Desired) bool { return d.Ref == ref })
			if isDesired || ownership.Read(&objects[i]).Parent == parent.ByName() {
				live[ref] = &objects[i]
			}
		}
		return err
	}
	for i := range desired {
		if err := add(desired[i].Resource, desired[i].Ref.Namespace != ""); err != nil {
			return nil, err
		}
	}
	for _, kind := range inventory.Kinds(parent.recorded) {
		mapping, err := plan.Served(p.cluster.mapper, kind)
		if err != nil {
			continue
		}
		if err := add(mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace); err != nil {
			return nil, err
		}
	}
	return live, nil
}

// ofResource lists the objects of a resource that the controller manages.
func (p *preview) ofResource(ctx context.Context, resource schema.GroupVersionResource, namespaced bool) ([]unstructured.Unstructured,
	error) {
	if objects, known := p.managed[resource]; known {
		return objects, nil
	}
	namespace := ""
	if namespaced && !p.policy.OtherNamespaces {
		namespace = p.configuration.Namespace
	}
	managed := metav1.ListOptions{LabelSelector: v0.LabelManagedBy + "=" + v0.ManagedBy}
	list, err := p.cluster.dynamic.Resource(resource).Namespace(namespace).List(ctx, managed)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	p.managed[resource] = list.Items
	return list.Items, nil
}

// change returns the change that a step makes, or nil if it makes none.
func (p *preview) change(
	ctx context.Context, parent previewed, step plan.Step, resource schema.GroupVersionResource, live *unstructured.Unstructured,
) (*view.Change, error) {
	change := &view.Change{Object: step.Ref, Why: step.Reason}
	if step.Desired != nil {
		change.Template = p.compiled.Name(parent.Level, int(step.Desired.Template))
	}
	if live == nil { // it may exist without the label
		var err error
		if live, err = p.get(ctx, resource, step.Ref); err != nil {
			return nil, err
		}
	}
	if live != nil {
		change.Before = live.Object
	}
	switch step.Action {
	case plan.Keep, plan.Skip, plan.Hold:
		return nil, nil
	case plan.Delete:
		if live == nil || !step.Claim.Deletes(ownership.Read(live)) {
			return nil, nil // already deleted, or not the parent's
		}
		change.Verb = view.Deleted
	case plan.Release:
		change.Verb, change.After = view.Orphaned, change.Before
	case plan.Wait:
		change.Verb, change.After = view.Waiting, change.Before
	default:
		return p.applied(ctx, step, change)
	}
	return change, nil
}

// applied returns a change with the result of a step that applies the object, or nil if
// the object stays as it is.
func (p *preview) applied(ctx context.Context, step plan.Step, change *view.Change) (*view.Change, error) {
	action, answer, err := p.cluster.apply.Do(ctx, step)
	switch {
	case err != nil:
	case action == plan.Skip:
		return nil, nil
	case action == plan.Recreate:
		change.After, err = p.recreate(ctx, step)
	default:
		err = answer.Read(func(object *unstructured.Unstructured) { change.After = object.Object })
	}
	if err != nil {
		change.Verb, change.Why = view.Rejected, rejection(err)
	} else {
		change.Verb, change.Why = outcome(step, action, change.Before != nil)
	}
	return change, nil
}

// outcome names what a step does to an object, and why. The template is shown anyway, so
// it is no reason.
func outcome(step plan.Step, action plan.Action, exists bool) (view.Verb, string) {
	switch {
	case step.Action == plan.Update && action == plan.Recreate:
		return view.Recreated, "the template changes a field that is immutable"
	case step.Action == plan.Recreate:
		return view.Recreated, step.Reason
	case step.Action == plan.Update && step.Change:
		return view.Changed, ""
	case step.Action == plan.Update:
		return view.Changed, step.Reason
	case exists:
		return view.Changed, "it exists and is adopted by this Configuration"
	}
	return view.Created, ""
}

// recreate returns an object as it would be after the existing one is deleted. It
// dry-runs the object under another name, because a dry run cannot delete the existing
// one. If that fails, the object is returned as rendered.
func (p *preview) recreate(ctx context.Context, step plan.Step) (map[string]any, error) {
	const maxBase = 40 // with the suffix, short enough for all kinds
	made := &unstructured.Unstructured{Object: step.Desired.Content}
	if err := p.cluster.apply.Try(ctx, step.Desired); err != nil {
		return nil, err
	}
	renamed := made.DeepCopy()
	renamed.SetName(step.Ref.Name[:min(len(step.Ref.Name), maxBase)] + "x-akri-diff")
	desired := *step.Desired
	desired.Content = renamed.Object
	answer, err := p.cluster.apply.Create(ctx, &desired, ownership.Claim{})
	if err != nil {
		return made.Object, nil
	}
	err = answer.Read(func(object *unstructured.Unstructured) {
		object.SetName(step.Ref.Name)
		made = object
	})
	return made.Object, err
}

// resource returns the resource of a step's object, if the API server serves it.
func (p *preview) resource(step plan.Step) (schema.GroupVersionResource, bool) {
	if step.Desired != nil {
		return step.Desired.Resource, true
	}
	mapping, err := plan.Served(p.cluster.mapper, step.Kind)
	if err != nil {
		return schema.GroupVersionResource{}, false
	}
	return mapping.Resource, true
}

// get returns an object, or nil if it does not exist.
func (p *preview) get(ctx context.Context, resource schema.GroupVersionResource, ref inventory.Ref) (*unstructured.Unstructured, error) {
	object, err := p.cluster.dynamic.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref, err)
	}
	return object, nil
}

// rejection returns the message for an error of a dry run, which is sent with the
// permissions of the user.
func rejection(err error) string {
	if answer, ok := errors.AsType[*problem.Error](err); ok && answer.Reason == v0.ReasonForbidden && answer.Err != nil {
		return "you are not allowed to apply it, and diff uses your permissions: " + answer.Err.Error()
	}
	if errors.Is(err, apply.ErrChanged) {
		return "it was changed in the meantime: run diff again"
	}
	return err.Error()
}

// messages returns the messages of problems.
func messages(problems []*problem.Error) []string {
	var texts []string
	for _, found := range problems {
		texts = append(texts, found.Error())
	}
	return texts
}

// sampleOf returns a sample device like the one of the admission webhook.
func sampleOf(configuration *v0.Configuration, compiled *templates.Templates) []v0.Instance {
	properties := maps.Clone(configuration.Spec.SampleProperties)
	if properties == nil {
		properties = map[string]string{}
	}
	maps.Copy(properties, configuration.Spec.BrokerProperties)
	device := sample.Instances(sample.Options{
		Configuration: configuration.Name, Namespace: configuration.Namespace, Capacity: int64(configuration.Spec.Capacity),
		Properties: properties, Keys: append(compiled.Instance.PropertyKeys(), compiled.Group.PropertyKeys()...),
	}, 1)[0]
	return []v0.Instance{{
		ObjectMeta: metav1.ObjectMeta{Namespace: configuration.Namespace, Name: device.Name, UID: sample.UID},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration.Name, Capacity: configuration.Spec.Capacity,
			BrokerProperties: device.Properties, Nodes: device.Nodes, Shared: device.Shared,
		},
	}}
}
