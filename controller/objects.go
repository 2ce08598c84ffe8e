package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/fight"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/watch"
	"akri.sh/akri/templating"
)

// objects brings the objects of one parent to what was rendered for it: the same
// road for a device and for a group.
type objects struct {
	mapper    meta.RESTMapper
	informers *watch.Informers
	clients   *apply.Clients
	policy    confine.Policy
	endings   *endings
	fights    *fight.Detector
	tell      teller
	metrics   *metrics
}

// parent is the Configuration or Instance that the objects belong to.
type parent struct {
	apply.Parent
	// instance tells which of the two.
	instance bool
	// account is the ServiceAccount that acts for it; empty for the controller.
	account types.NamespacedName
}

func (p parent) watched() watch.Parent {
	return watch.Parent{Instance: p.instance, NamespacedName: p.NamespacedName}
}

func (p parent) level() templating.Level {
	if p.instance {
		return templating.InstanceLevel
	}
	return templating.ConfigurationLevel
}

// wanted is what a parent's objects should be.
type wanted struct {
	templates *templates.Templates
	rendered  []templating.Object
	// diagnostics say what could not be rendered; its objects are left as they
	// are.
	diagnostics templating.Diagnostics
	// turn asks whether what exists may be changed now, given whether it is
	// ready; nil: always.
	turn func(ready bool) bool
}

// outcome is what came of it.
type outcome struct {
	// resources is the new inventory.
	resources []v0.ResourceStatus
	// problems, in the order of the templates.
	problems []problem.Problem
	// held: what the templates ask for anew waits for its turn.
	held bool
	// announce: resources has to be written, with our finalizer on the parent,
	// before anything is applied. Nothing was.
	announce bool
	// pending: the watch of some kind is still starting, or an object changed
	// under our hands. There is nothing to report yet; another pass is to come.
	pending bool
	// again is when to look at the parent again without news; 0 is never.
	again time.Duration
}

func (o *outcome) fail(origin string, err error) {
	o.problems = append(o.problems, problem.Of(origin, err))
}

// soon asks for another pass after a while, or sooner.
func (o *outcome) soon(after time.Duration) {
	if o.again == 0 || after < o.again {
		o.again = after
	}
}

// bring makes the parent's objects be as wanted.
func (o *objects) bring(ctx context.Context, parent parent, want wanted, recorded []v0.ResourceStatus) outcome {
	result := outcome{problems: want.templates.Diagnosed(parent.level(), v0.ReasonRenderFailed, want.diagnostics)}
	client, err := o.clients.As(parent.account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.resources = recorded
		return result
	}
	desired, resources := o.resolve(parent, want, &result)
	o.serve(recorded, resources)
	observed := o.observe(parent, desired, resources)

	now := time.Now()
	ended := slices.ContainsFunc(desired, func(want plan.Desired) bool {
		pod := observed[want.Ref]
		return pod.Ended && !pod.Terminating && !want.Once
	})
	if ended {
		result.again = o.endings.wait(parent.UID, now)
	}
	input := plan.Input{
		Parent:       parent.UID,
		Home:         parent.Namespace,
		Desired:      desired,
		Observed:     observed,
		Recorded:     recorded,
		Complete:     len(result.problems) == 0 && !result.pending,
		ReplaceEnded: ended && result.again == 0,
	}
	steps := plan.Compute(input)
	if want.turn != nil && plan.Changes(steps) && (result.pending || !want.turn(o.ready(steps, resources))) {
		input.Hold, result.held = true, true
		steps = plan.Compute(input)
	}
	if unannounced := plan.Unannounced(input, steps); len(unannounced) > 0 {
		result.announce = true
		result.resources = append(slices.Clone(recorded), unannounced...)
		inventory.Sort(result.resources)
		return result
	}
	if input.ReplaceEnded {
		o.endings.replaced(parent.UID, now)
	}
	execution := execution{objects: o, client: client, parent: parent, templates: want.templates, resources: resources, now: now, result: &result}
	execution.run(ctx, steps, recorded)
	for _, found := range result.problems {
		o.metrics.failed(found.Reason)
	}
	inventory.Sort(result.resources)
	return result
}

// resolve finds the resource of each object, confines it, completes it and makes
// sure that it is watched.
func (o *objects) resolve(parent parent, want wanted, result *outcome) ([]plan.Desired, map[schema.GroupKind]schema.GroupVersionResource) {
	desired := make([]plan.Desired, 0, len(want.rendered))
	resources := map[schema.GroupKind]schema.GroupVersionResource{}
	origins := map[inventory.Ref]string{}
	for _, object := range want.rendered {
		origin := want.templates.Place(parent.level(), object.Origin.String())
		kind := (&unstructured.Unstructured{Object: object.Content}).GroupVersionKind()
		mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			result.fail(origin, apply.KindUnavailable(kind, err))
			continue
		}
		if err != nil {
			result.fail(origin, fmt.Errorf("ask the API server for %s: %w", kind, err))
			continue
		}
		namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
		if err := o.policy.Object(object.Content, namespaced, parent.Namespace); err != nil {
			result.fail(origin, err)
			continue
		}
		full, err := plan.Want(plan.Parent{Kind: parent.Kind, Namespace: parent.Namespace, Name: parent.Name, UID: parent.UID}, object, namespaced)
		if err != nil {
			result.fail(origin, err)
			continue
		}
		if first, twice := origins[full.Ref]; twice {
			result.fail(origin, &apply.Error{Reason: v0.ReasonConflict, Cause: fmt.Sprintf("%s is also rendered by %s: give one of them another metadata.name", full.Ref, first)})
			continue
		}
		origins[full.Ref] = origin
		state := o.informers.Ask(mapping.Resource, parent.watched(), object.Directives.ReadyWhen)
		if !state.Synced {
			if state.Err == nil {
				result.pending = true
			} else {
				result.fail(origin, apply.Watch(kind, mapping.Resource, state.Err))
			}
			continue
		}
		resources[kind.GroupKind()] = mapping.Resource
		desired = append(desired, full)
	}
	return desired, resources
}

// serve adds the resources of the objects in an inventory.
func (o *objects) serve(recorded []v0.ResourceStatus, resources map[schema.GroupKind]schema.GroupVersionResource) {
	for _, kind := range inventory.Kinds(recorded) {
		if mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			resources[kind.GroupKind()] = mapping.Resource
		}
	}
}

// observe reads from the watches what planning needs.
func (o *objects) observe(parent parent, desired []plan.Desired, resources map[schema.GroupKind]schema.GroupVersionResource) map[inventory.Ref]plan.Observed {
	observed := map[inventory.Ref]plan.Observed{}
	for kind, resource := range resources {
		for _, object := range o.informers.Of(resource, parent.watched()) {
			observed[inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = object.Observed()
		}
	}
	for _, want := range desired {
		if object, found := o.live(want.Ref, resources); found {
			observed[want.Ref] = object.Observed()
		}
	}
	return observed
}

// live is an object as last seen.
func (o *objects) live(ref inventory.Ref, resources map[schema.GroupKind]schema.GroupVersionResource) (*watch.Object, bool) {
	resource, served := resources[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	if !served {
		return nil, false
	}
	return o.informers.Get(resource, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
}

// ready tells whether all that exists of what is desired is ready.
func (o *objects) ready(steps []plan.Step, resources map[schema.GroupKind]schema.GroupVersionResource) bool {
	for _, step := range steps {
		object, found := o.live(step.Ref, resources)
		if !found || step.Desired == nil {
			continue
		}
		if ready, _ := object.ReadyBy(step.Desired.ReadyWhen); !ready || object.Ended && !step.Desired.Once {
			return false
		}
	}
	return true
}

// clear removes, for a parent that is being deleted, what garbage collection does
// not. It returns the inventory of what is left.
func (o *objects) clear(ctx context.Context, parent parent, recorded []v0.ResourceStatus) outcome {
	var result outcome
	client, err := o.clients.As(parent.account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.resources = recorded
		return result
	}
	resources := map[schema.GroupKind]schema.GroupVersionResource{}
	o.serve(recorded, resources)
	execution := execution{objects: o, client: client, parent: parent, resources: resources, now: time.Now(), result: &result}
	execution.run(ctx, plan.Clear(parent.Namespace, recorded), recorded)
	inventory.Sort(result.resources)
	return result
}
