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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/view"
	"akri.sh/akri/controller/watch"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/sample"
)

// preview takes the controller's road for a Configuration, render, plan, apply,
// on an API server that only tries what it is asked.
type preview struct {
	cluster       *cluster
	apply         *apply.Client
	configuration *v0.Configuration
	compiled      *templates.Templates
	policy        confine.Policy
	sample        bool // the devices are made up
	// managed are the objects with our label, by resource, as the controller's
	// watches see them.
	managed map[schema.GroupVersionResource][]unstructured.Unstructured
}

// newPreview needs a cluster whose requests go through [dryRun].
func newPreview(c *cluster, configuration *v0.Configuration, policy confine.Policy) *preview {
	return &preview{
		cluster: c, apply: apply.NewClient(c.dynamic),
		configuration: configuration, compiled: templates.Compile(configuration, policy), policy: policy,
		managed: map[schema.GroupVersionResource][]unstructured.Unstructured{},
	}
}

// previewed is one parent and what was rendered for it.
type previewed struct {
	plan.Parent
	level       templating.Level
	objects     []templating.Object
	diagnostics templating.Diagnostics
	recorded    []v0.ResourceStatus
}

// all is what becomes of the objects of the Instances and of the group.
func (p *preview) all(ctx context.Context, instances []v0.Instance) ([]view.Changes, error) {
	title := fmt.Sprintf("Configuration %s/%s", p.configuration.Namespace, p.configuration.Name)
	if len(p.compiled.Problems) > 0 {
		return []view.Changes{{Parent: title, Problems: messages(p.compiled.Problems)}}, nil
	}
	var all []view.Changes
	for i := range instances {
		instance := &instances[i]
		parent := previewed{
			Parent:   plan.Parent{Kind: v0.InstanceKind, Namespace: instance.Namespace, Name: instance.Name, UID: instance.UID},
			level:    templating.InstanceLevel,
			recorded: instance.Status.Resources,
		}
		parent.objects, parent.diagnostics = p.compiled.Instance.Render(templates.InstanceValues(p.configuration, instance))
		changes, err := p.changes(ctx, parent)
		if err != nil {
			return nil, err
		}
		changes.Parent = fmt.Sprintf("Instance %s/%s", instance.Namespace, instance.Name)
		all = append(all, changes)
	}
	group := previewed{
		Parent:   plan.Parent{Kind: v0.ConfigurationKind, Namespace: p.configuration.Namespace, Name: p.configuration.Name, UID: p.configuration.UID},
		level:    templating.ConfigurationLevel,
		recorded: p.configuration.Status.Resources,
	}
	if len(instances) > 0 { // the group's objects exist exactly while there is a device
		group.objects, group.diagnostics = p.compiled.Group.Render(templates.GroupValues(p.configuration, instances))
	}
	changes, err := p.changes(ctx, group)
	changes.Parent = title
	return append(all, changes), err
}

// changes is what becomes of one parent's objects.
func (p *preview) changes(ctx context.Context, parent previewed) (view.Changes, error) {
	result := view.Changes{Sample: p.sample}
	problems := p.compiled.Diagnosed(parent.level, v0.ReasonRenderFailed, parent.diagnostics)
	mappings := map[schema.GroupKind]*meta.RESTMapping{}
	var desired []plan.Desired
	for _, object := range parent.objects {
		want, mapping, err := p.want(parent, object)
		if err != nil {
			problems = append(problems, problem.Of(p.compiled.Place(parent.level, object.Origin.String()), err))
			continue
		}
		if slices.ContainsFunc(desired, func(other plan.Desired) bool { return other.Ref == want.Ref }) {
			conflict := &apply.Error{Reason: v0.ReasonConflict, Cause: want.Ref.String() + " is rendered twice: give one of them another metadata.name"}
			problems = append(problems, problem.Of(p.compiled.Place(parent.level, object.Origin.String()), conflict))
			continue
		}
		desired = append(desired, want)
		mappings[mapping.GroupVersionKind.GroupKind()] = mapping
	}
	for _, kind := range inventory.Kinds(parent.recorded) {
		if mapping, err := p.cluster.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			mappings[kind.GroupKind()] = mapping
		}
	}
	live, err := p.live(ctx, parent, desired, mappings)
	if err != nil {
		return result, err
	}
	observed := make(map[inventory.Ref]plan.Observed, len(live))
	for ref, object := range live {
		observed[ref] = watch.Trim(object).Observed()
	}
	result.Problems = messages(problems)
	steps := plan.Compute(plan.Input{
		Parent: parent.UID, Home: parent.Namespace, Desired: desired, Observed: observed, Recorded: parent.recorded,
		Complete:     len(problems) == 0,
		ReplaceEnded: true, // they are, sooner or later
	})
	refused := false
	for _, step := range steps {
		mapping, served := mappings[step.Kind.GroupKind()]
		if !served {
			continue // the kind has gone, and its objects with it
		}
		change, err := p.change(ctx, parent, step, mapping.Resource, live[step.Ref])
		if err != nil {
			return result, err
		}
		if change == nil {
			continue
		}
		refused = refused || change.Verb == view.Refused
		if change.Verb == view.Deleted && refused {
			change.Verb, change.Why, change.After = view.Waits, "to be deleted when all of the above is applied", change.Before
		}
		result.Objects = append(result.Objects, *change)
	}
	return result, nil
}

// want is a rendered object as it is to be applied, and its resource.
func (p *preview) want(parent previewed, object templating.Object) (plan.Desired, *meta.RESTMapping, error) {
	kind := (&unstructured.Unstructured{Object: object.Content}).GroupVersionKind()
	mapping, err := p.cluster.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return plan.Desired{}, nil, apply.KindUnavailable(kind, err)
	}
	if err != nil {
		return plan.Desired{}, nil, fmt.Errorf("ask the API server for %s: %w", kind, err)
	}
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	if err := p.policy.Object(object.Content, namespaced, parent.Namespace); err != nil {
		return plan.Desired{}, nil, err
	}
	want, err := plan.Want(parent.Parent, object, namespaced)
	return want, mapping, err
}

// live are the objects that the controller would see of the parent's: those with
// the parent's labels, and those that are desired.
func (p *preview) live(ctx context.Context, parent previewed, desired []plan.Desired, mappings map[schema.GroupKind]*meta.RESTMapping) (map[inventory.Ref]*unstructured.Unstructured, error) {
	live := map[inventory.Ref]*unstructured.Unstructured{}
	self := watch.Parent{Instance: parent.level == templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}}
	for kind, mapping := range mappings {
		objects, err := p.ofResource(ctx, mapping)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			ref := inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: objects[i].GetNamespace(), Name: objects[i].GetName()}
			wanted := slices.ContainsFunc(desired, func(want plan.Desired) bool { return want.Ref == ref })
			if wanted || watch.Trim(&objects[i]).Parent == self {
				live[ref] = &objects[i]
			}
		}
	}
	return live, nil
}

func (p *preview) ofResource(ctx context.Context, mapping *meta.RESTMapping) ([]unstructured.Unstructured, error) {
	if objects, known := p.managed[mapping.Resource]; known {
		return objects, nil
	}
	var from dynamic.ResourceInterface = p.cluster.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace && !p.policy.OtherNamespaces {
		from = p.cluster.dynamic.Resource(mapping.Resource).Namespace(p.configuration.Namespace)
	}
	list, err := from.List(ctx, metav1.ListOptions{LabelSelector: v0.LabelManagedBy + "=" + v0.ManagedBy})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
	}
	p.managed[mapping.Resource] = list.Items
	return list.Items, nil
}

// change tries a step; nil if nothing becomes of the object.
func (p *preview) change(ctx context.Context, parent previewed, step plan.Step, resource schema.GroupVersionResource, live *unstructured.Unstructured) (*view.Change, error) {
	change := &view.Change{Object: step.Ref, Why: step.Reason}
	if step.Desired != nil {
		change.Template = p.compiled.Name(parent.level, int(step.Desired.Template))
	}
	if live == nil { // it may lack our label, or be somebody else's
		var err error
		if live, err = p.get(ctx, resource, step.Ref); err != nil {
			return nil, err
		}
	}
	if live != nil {
		change.Before = live.Object
	}
	var answer *unstructured.Unstructured
	var err error
	switch step.Action {
	case plan.Delete:
		change.Verb = view.Deleted
		if live == nil || live.GetUID() != step.UID && (step.UID != "" || watch.Trim(live).Owner != parent.UID) {
			return nil, nil // it has gone already, or is another
		}
		return change, nil
	case plan.Release:
		change.Verb, change.After = view.Released, change.Before
		return change, nil
	case plan.Wait:
		change.Verb, change.After = view.Waits, change.Before
		return change, nil
	case plan.Conflict:
		change.Verb, change.Why = view.Refused, apply.Conflict(step.Ref.String()).Error()
		return change, nil
	case plan.Create:
		want := step.Desired
		owner := apply.Owner{Parent: parent.UID, Applied: recordedUID(parent.recorded, step.Ref), Nobody: want.Orphan, Anybody: want.OnConflict == templating.ConflictTake}
		change.Verb, change.Why = view.Created, ""
		if live != nil {
			change.Verb, change.Why = view.Changed, "it exists, and becomes this Configuration's"
		}
		answer, err = p.apply.Create(ctx, step.Kind, resource, owner, want.Content)
		if want.OnConflict == templating.ConflictSkip && apply.Reason(err) == v0.ReasonConflict {
			return nil, nil
		}
	case plan.Update:
		change.Verb = view.Changed
		if step.Change {
			change.Why = "" // the templates ask for it: that is said
		}
		answer, err = p.apply.Update(ctx, step.Kind, resource, step.UID, step.Desired.Content)
		if step.Desired.Recreate && apply.Reason(err) == v0.ReasonImmutable {
			change.Verb, change.Why = view.Recreated, "the template changes a field that is immutable"
			answer, err = p.anew(ctx, step, resource)
		}
	case plan.Recreate:
		change.Verb = view.Recreated
		answer, err = p.anew(ctx, step, resource)
	default: // Keep, Skip
		return nil, nil
	}
	if err != nil {
		change.Verb, change.Why = view.Refused, refusal(err)
		return change, nil
	}
	change.After = answer.Object
	return change, nil
}

// anew is an object as it would be when the one of its name had gone. It is tried
// under another name; if only the old one stands in the way, it is as rendered.
func (p *preview) anew(ctx context.Context, step plan.Step, resource schema.GroupVersionResource) (*unstructured.Unstructured, error) {
	const longestBase = 40 // with the suffix it fits wherever a name does
	wanted := &unstructured.Unstructured{Object: step.Desired.Content}
	if err := p.apply.Try(ctx, step.Kind, resource, wanted.Object); err != nil {
		return nil, err
	}
	renamed := wanted.DeepCopy()
	renamed.SetName(step.Ref.Name[:min(len(step.Ref.Name), longestBase)] + "x-akri-diff")
	answer, err := p.apply.Create(ctx, step.Kind, resource, apply.Owner{}, renamed.Object)
	if err != nil {
		return wanted, nil
	}
	answer.SetName(step.Ref.Name)
	return answer, nil
}

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

func recordedUID(recorded []v0.ResourceStatus, ref inventory.Ref) types.UID {
	return types.UID(inventory.Index(recorded)[ref].UID)
}

// refusal is an error of a dry run for the person who asked for it, whose rights
// it needs.
func refusal(err error) string {
	if answer, ok := errors.AsType[*apply.Error](err); ok && answer.Reason == v0.ReasonForbidden && answer.Err != nil {
		return "you may not apply it, and diff tries it with your rights: " + answer.Err.Error()
	}
	if errors.Is(err, apply.ErrChanged) {
		return "it has changed meanwhile: run diff again"
	}
	return err.Error()
}

func messages(problems []problem.Problem) []string {
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.Message)
	}
	return texts
}

// sampleOf is one made-up device, as the admission webhook uses it.
func sampleOf(configuration *v0.Configuration, compiled *templates.Templates) []v0.Instance {
	properties := maps.Clone(configuration.Spec.SampleProperties)
	if properties == nil {
		properties = map[string]string{}
	}
	maps.Copy(properties, configuration.Spec.BrokerProperties)
	made := sample.Instances(sample.Options{
		Configuration: configuration.Name, Namespace: configuration.Namespace, Capacity: int64(configuration.Spec.Capacity),
		Properties: properties, Keys: append(compiled.Instance.PropertyKeys(), compiled.Group.PropertyKeys()...),
	}, 1)[0]
	return []v0.Instance{{
		ObjectMeta: metav1.ObjectMeta{Namespace: configuration.Namespace, Name: made.Name, UID: sample.UID},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration.Name, Capacity: configuration.Spec.Capacity,
			BrokerProperties: made.Properties, Nodes: made.Nodes, Shared: made.Shared,
		},
	}}
}
