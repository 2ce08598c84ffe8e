package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/fight"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
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

// wanted is what a parent's objects should be.
type wanted struct {
	// account is the ServiceAccount that acts for the parent; empty for the
	// controller.
	account   types.NamespacedName
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
func (o *objects) bring(ctx context.Context, parent ownership.Parent, want wanted, recorded []v0.ResourceStatus) outcome {
	result := outcome{problems: want.templates.Diagnosed(parent.Level, v0.ReasonRenderFailed, want.diagnostics)}
	client, err := o.clients.As(want.account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.resources = recorded
		return result
	}
	desired := o.resolve(parent, want, &result)
	observed := o.observe(parent, desired, recorded)

	now := time.Now()
	ended := slices.ContainsFunc(desired, func(want plan.Desired) bool {
		pod := observed[want.Ref]
		return pod.Ended && !pod.Terminating && !want.Once
	})
	if ended {
		result.again = o.endings.wait(parent.UID, now)
	}
	input := plan.Input{
		Parent:       parent,
		Desired:      desired,
		Observed:     observed,
		Recorded:     recorded,
		Complete:     len(result.problems) == 0 && !result.pending,
		ReplaceEnded: ended && result.again == 0,
	}
	steps := plan.Compute(input)
	if want.turn != nil && plan.Changes(steps) && (result.pending || !want.turn(o.ready(steps))) {
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
	execution := execution{objects: o, client: client, parent: parent, templates: want.templates, now: now, result: &result}
	execution.run(ctx, steps, recorded)
	for _, found := range result.problems {
		o.metrics.failed(found.Reason)
	}
	inventory.Sort(result.resources)
	return result
}

// resolve returns the objects that are desired and watched.
func (o *objects) resolve(parent ownership.Parent, want wanted, result *outcome) []plan.Desired {
	place := func(origin templating.Origin) string { return want.templates.Place(parent.Level, origin.String()) }
	desired, problems := plan.Desire(o.mapper, o.policy, parent, want.rendered, place)
	result.problems = append(result.problems, problems...)
	return slices.DeleteFunc(desired, func(want plan.Desired) bool {
		state := o.informers.Ask(want.Resource, parent, want.ReadyWhen)
		switch {
		case state.Synced:
			return false
		case state.Err == nil:
			result.pending = true
		default:
			result.fail(want.Origin, apply.WatchError(want.Kind, want.Resource, state.Err))
		}
		return true
	})
}

// observe reads from the watches what planning needs.
func (o *objects) observe(parent ownership.Parent, desired []plan.Desired, recorded []v0.ResourceStatus) map[inventory.Ref]plan.Observed {
	observed := map[inventory.Ref]plan.Observed{}
	seen := map[schema.GroupVersionResource]bool{}
	see := func(kind schema.GroupKind, resource schema.GroupVersionResource) {
		if seen[resource] {
			return
		}
		seen[resource] = true
		for _, object := range o.informers.Of(resource, parent) {
			observed[inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = object.Observed()
		}
	}
	for _, kind := range inventory.Kinds(recorded) {
		if mapping, err := o.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			see(kind.GroupKind(), mapping.Resource)
		}
	}
	for i := range desired {
		see(desired[i].Kind.GroupKind(), desired[i].Resource)
	}
	for i := range desired {
		if object, found := o.live(&desired[i]); found {
			observed[desired[i].Ref] = object.Observed()
		}
	}
	return observed
}

// live is a desired object as last seen.
func (o *objects) live(want *plan.Desired) (*watch.Object, bool) {
	return o.informers.Get(want.Resource, types.NamespacedName{Namespace: want.Ref.Namespace, Name: want.Ref.Name})
}

// ready tells whether all that exists of what is desired is ready.
func (o *objects) ready(steps []plan.Step) bool {
	for _, step := range steps {
		if step.Desired == nil {
			continue
		}
		object, found := o.live(step.Desired)
		if !found {
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
func (o *objects) clear(ctx context.Context, parent ownership.Parent, account types.NamespacedName, recorded []v0.ResourceStatus) outcome {
	var result outcome
	client, err := o.clients.As(account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.resources = recorded
		return result
	}
	execution := execution{objects: o, client: client, parent: parent, now: time.Now(), result: &result}
	execution.run(ctx, plan.Clear(parent, recorded), recorded)
	inventory.Sort(result.resources)
	return result
}
