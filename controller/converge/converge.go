package converge

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
	"akri.sh/akri/controller/contention"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// Options are what a [Converger] works with.
type Options struct {
	Mapper    meta.RESTMapper
	Informers *informers.Informers
	Clients   *apply.Clients
	Policy    confine.Policy
	Observer  Observer
}

// Observer is notified of actions and failures. Its methods must not block.
type Observer interface {
	// Did is called for each object that was written, deleted or released.
	Did(plan.Action)
	// Failed is called for each problem of a pass, with its reason.
	Failed(reason string)
	// Replaced is called before a terminated Pod is deleted for its replacement.
	Replaced(parent ownership.Parent, pod inventory.Ref, why string)
}

// Converger converges the objects of all parents. It is safe for concurrent use
// with different parents.
type Converger struct {
	Options
	podBackoff *podBackoff
	contention *contention.Detector
	memory     *memory
}

// New returns a Converger without state.
func New(options Options) *Converger {
	return &Converger{Options: options, podBackoff: newPodBackoff(), contention: contention.NewDetector(), memory: newMemory()}
}

// Forget drops what is remembered about a parent.
func (c *Converger) Forget(parent types.UID) {
	c.podBackoff.forget(parent)
	c.contention.Forget(parent)
	c.memory.forget(parent)
}

// Remembered returns how many parents have a back-off for terminated Pods, and how
// many objects were repaired recently.
func (c *Converger) Remembered() (podBackoffs, repairs int) {
	return c.podBackoff.len(), c.contention.Len()
}

// Request is the desired state of a parent's objects.
type Request struct {
	// Account is the ServiceAccount that acts for the parent; empty for the
	// controller.
	Account   types.NamespacedName
	Templates *templates.Templates
	Rendered  []templating.Object
	// Diagnostics name the objects that could not be rendered. Existing ones are left
	// alone.
	Diagnostics templating.Diagnostics
	// Kinds are further kinds of objects that the parent may have, although neither
	// its inventory nor a template names them: it may have lost its inventory.
	Kinds []schema.GroupVersionKind
	// Record writes an inventory to the parent before the pass creates objects that it
	// lacks and that garbage collection cannot remove.
	Record func(resources []v0.ResourceStatus) error
	// MayChange reports whether existing objects may be changed now, given whether
	// they are ready. Nil allows every change.
	MayChange func(ready bool) bool
}

// Converge brings a parent's objects to the desired state. recorded is the parent's
// inventory. If there is an error, the parent could not be written, and nothing was
// applied; it is apply.ErrGone if the parent no longer exists.
func (c *Converger) Converge(ctx context.Context, parent ownership.Parent, request Request, recorded []v0.ResourceStatus) (Outcome, error) {
	result := Outcome{Problems: request.Templates.Diagnosed(v0.ReasonRenderFailed, request.Diagnostics)}
	client, err := c.Clients.As(request.Account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.Resources = recorded
		return result, nil
	}
	recorded = c.memory.complete(parent.UID, recorded)
	desired := c.resolve(ctx, parent, request, &result)
	c.checkWatches(recorded, &result)
	now := time.Now()
	input := plan.Input{
		Parent:   parent,
		Desired:  desired,
		Observed: c.observe(parent, desired, append(inventory.Kinds(recorded), request.Kinds...)),
		Recorded: recorded,
		Complete: len(result.Problems) == 0 && !result.Pending,

		Remembered: func(object types.UID) bool { return c.memory.hasApplied(parent.UID, object) },
	}
	if input.HasTerminatedPod() {
		result.RequeueAfter = c.podBackoff.wait(parent.UID, now)
		input.ReplaceTerminated = result.RequeueAfter == 0
	} else if input.Complete { // otherwise it may only not have been seen
		c.podBackoff.none(parent.UID, now)
	}
	steps := plan.Compute(input)
	if request.MayChange != nil && plan.Changes(steps) && (result.Pending || !request.MayChange(c.ready(steps))) {
		steps, result.Held = plan.WithoutChanges(steps), true
	}
	if unrecorded := plan.Unrecorded(input, steps); len(unrecorded) > 0 {
		recorded = append(slices.Clone(recorded), unrecorded...)
		inventory.Sort(recorded)
		if err := c.recordFirst(ctx, parent, request, recorded); err != nil {
			return Outcome{}, err
		}
	}
	if input.ReplaceTerminated {
		c.podBackoff.replaced(parent.UID, now)
	}
	e := execution{Converger: c, client: client, parent: parent, now: now, result: &result}
	e.run(ctx, steps, recorded)
	for _, problem := range result.Problems {
		c.Observer.Failed(problem.Reason)
	}
	inventory.Sort(result.Resources)
	c.memory.report(parent.UID, result.Resources, !result.Pending)
	return result, nil
}

// resolve returns the desired objects whose resources are watched.
func (c *Converger) resolve(ctx context.Context, parent ownership.Parent, request Request, result *Outcome) []plan.Desired {
	desired, problems := plan.Desire(c.Mapper, c.Policy, parent, request.Rendered, request.Templates.Place)
	result.Problems = append(result.Problems, problems...)
	c.Informers.Await(parent, skippable(desired))
	return slices.DeleteFunc(desired, func(object plan.Desired) bool {
		state := c.Informers.Ensure(object.Resource, parent)
		switch {
		case state.Synced:
		case state.Err == nil:
			result.Pending = true
			return true
		default:
			result.fail(object.Place, apply.WatchError(object.Kind, object.Resource, state.Err))
			return true
		}
		if err := c.Informers.Judge(ctx, object.Resource, parent, object.Ref.NamespacedName(), object.ReadyWhen); err != nil {
			result.fail(object.Place, apply.WatchError(object.Kind, object.Resource, err))
			return true
		}
		return false
	})
}

// skippable returns the desired objects that the parent leaves to their owner while they
// exist. It creates them once their owner has deleted them.
func skippable(desired []plan.Desired) []informers.Name {
	var names []informers.Name
	for i := range desired {
		if desired[i].OnConflict == templating.ConflictSkip {
			names = append(names, informers.Name{Resource: desired[i].Resource, NamespacedName: desired[i].Ref.NamespacedName()})
		}
	}
	return names
}

// checkWatches records the watches of existing objects that do not work: what is
// known of these objects is stale, so nothing may be deleted.
func (c *Converger) checkWatches(recorded []v0.ResourceStatus, result *Outcome) {
	if len(result.Problems) > 0 {
		return // nothing is deleted in this pass
	}
	for _, kind := range inventory.Kinds(recorded) {
		mapping, err := plan.Served(c.Mapper, kind)
		if err != nil {
			continue // the kind is no longer served, and has no objects
		}
		if state := c.Informers.State(mapping.Resource); state.Err != nil {
			result.fail(kind.Kind, apply.WatchError(kind, mapping.Resource, state.Err))
		}
	}
}

// observe reads from the watches what planning needs: the parent's objects of some
// kinds, and of those of the desired objects.
func (c *Converger) observe(
	parent ownership.Parent, desired []plan.Desired, kinds []schema.GroupVersionKind,
) map[inventory.Ref]plan.Observed {
	observed := map[inventory.Ref]plan.Observed{}
	seen := map[schema.GroupVersionResource]bool{}
	see := func(kind schema.GroupKind, resource schema.GroupVersionResource) {
		if seen[resource] {
			return
		}
		seen[resource] = true
		for _, object := range c.Informers.OwnedBy(resource, parent) {
			observed[inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = object.Observed
		}
	}
	for _, kind := range kinds {
		if mapping, err := plan.Served(c.Mapper, kind); err == nil {
			see(kind.GroupKind(), mapping.Resource)
		}
	}
	for i := range desired {
		see(desired[i].Kind.GroupKind(), desired[i].Resource)
	}
	for i := range desired {
		if object, found := c.live(&desired[i]); found {
			observed[desired[i].Ref] = object.Observed
		}
	}
	return observed
}

// live returns a desired object as last seen.
func (c *Converger) live(object *plan.Desired) (*informers.Object, bool) {
	return c.Informers.Get(object.Resource, object.Ref.NamespacedName())
}

// ready reports whether all desired objects that exist are ready.
func (c *Converger) ready(steps []plan.Step) bool {
	for _, step := range steps {
		if step.Desired == nil {
			continue
		}
		object, found := c.live(step.Desired)
		if !found {
			continue
		}
		if ready, _ := object.ReadyBy(step.Desired.ReadyWhen); !ready || object.Terminated && !step.Desired.Once {
			return false
		}
	}
	return true
}
