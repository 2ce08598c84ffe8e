package converge

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// Converger converges the objects of all parents. It is safe for concurrent use
// with different parents.
type Converger struct {
	Mapper    plan.Mapper
	Informers *informers.Informers
	Client    *apply.Client // acts as the controller
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

// FirstRetry is the delay before the next pass when an object changed between the
// plan and the request.
const FirstRetry = 200 * time.Millisecond

// Outcome is the result of a pass. The table in the package comment says when each
// flag is set and how the reconcilers act on it.
type Outcome struct {
	// Resources is the new inventory.
	Resources []v0.ResourceStatus
	// Problems are in the order of the templates within each part of the pass.
	Problems []*problem.Error
	// Held reports that the rollout gate holds a change.
	Held bool
	// Uncreated is the number of held objects that do not exist yet, and that are not among
	// the Resources.
	Uncreated int
	// Pending reports that there is nothing to report yet: the watch of some kind
	// has not synced, or an object changed under the plan.
	Pending bool
	// RequeueAfter is the delay before the next pass if no event comes first; 0 is
	// none.
	RequeueAfter time.Duration
}

// fail records an error at a place in the Configuration as a problem.
func (o *Outcome) fail(place string, err error) {
	o.Problems = append(o.Problems, problem.At(place, err))
}

// Requeue requests another pass after a delay at the latest; 0 requests none.
func (o *Outcome) Requeue(after time.Duration) {
	o.RequeueAfter = Sooner(o.RequeueAfter, after)
}

// Sooner returns the shorter of two delays, where zero is none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// pass is one pass over the objects of a parent.
type pass struct {
	*Converger
	client   *apply.Client // acts for the parent
	parent   ownership.Parent
	recorded []v0.ResourceStatus
	known    *History
	now      time.Time
	Outcome
}

func (c *Converger) newPass(
	parent ownership.Parent, account types.NamespacedName, recorded []v0.ResourceStatus, known *History,
) *pass {
	p := &pass{Converger: c, client: c.Client.As(account), parent: parent, recorded: recorded, known: known, now: time.Now()}
	known.calm(p.now)
	return p
}

// Converge brings a parent's objects to the desired state. recorded is the parent's
// inventory. If there is an error, the parent could not be written, and nothing was
// applied; it is apply.ErrGone if the parent no longer exists.
func (c *Converger) Converge(
	ctx context.Context, parent ownership.Parent, request Request, recorded []v0.ResourceStatus, known *History,
) (Outcome, error) {
	p := c.newPass(parent, request.Account, recorded, known)
	p.Problems = request.Templates.Diagnosed(v0.ReasonRenderFailed, request.Diagnostics)
	desired := p.resolve(ctx, request)
	p.checkWatches()
	steps := p.plan(desired, request)
	if err := p.recordFirst(ctx, request, plan.Unrecorded(parent, steps)); err != nil {
		return Outcome{}, err
	}
	p.execute(ctx, steps)
	for _, found := range p.Problems {
		c.Observer.Failed(found.Reason)
	}
	return p.Outcome, nil
}

// plan returns the steps of the pass.
func (p *pass) plan(desired []plan.Desired, request Request) []plan.Step {
	input := plan.Input{
		Parent:     p.parent,
		Desired:    desired,
		Observed:   p.observe(desired, request.Kinds),
		Recorded:   p.recorded,
		Remembered: p.known.hasApplied,
		Complete:   len(p.Problems) == 0 && !p.Pending,
	}
	terminated := input.HasTerminatedPod()
	if terminated {
		p.RequeueAfter = p.known.pods.wait(p.now)
		input.ReplaceTerminated = p.RequeueAfter == 0
	}
	if input.ReplaceTerminated || input.Complete && !terminated { // otherwise it may only not have been seen
		p.known.pods.done(p.now)
	}
	steps := plan.Compute(input)
	if request.MayChange != nil && plan.Changes(steps) && (p.Pending || !request.MayChange(p.ready(steps))) {
		plan.Withhold(steps)
		p.Held = true
	}
	return steps
}

// resolve returns the desired objects whose resources are watched.
func (p *pass) resolve(ctx context.Context, request Request) []plan.Desired {
	desired, problems := plan.Desire(p.Mapper, p.Policy, p.parent, request.Rendered, request.Templates.Place)
	p.Problems = append(p.Problems, problems...)
	p.Informers.Await(p.parent, skippable(desired))
	return slices.DeleteFunc(desired, func(object plan.Desired) bool {
		state := p.Informers.Ensure(object.Resource, p.parent)
		err := state.Err
		if state.Synced {
			err = p.Informers.Judge(ctx, object.Resource, p.parent, object.Ref.NamespacedName(), object.ReadyWhen)
		}
		if err != nil {
			p.fail(object.Place, apply.WatchError(object.Kind, object.Resource, err))
		}
		p.Pending = p.Pending || !state.Synced && err == nil
		return !state.Synced || err != nil
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
func (p *pass) checkWatches() {
	if len(p.Problems) > 0 {
		return // nothing is deleted in this pass
	}
	for _, kind := range inventory.Kinds(p.recorded) {
		mapping, err := plan.Served(p.Mapper, kind)
		if err != nil {
			continue // the kind is no longer served, and has no objects
		}
		if state := p.Informers.State(mapping.Resource); state.Err != nil {
			p.fail(kind.Kind, apply.WatchError(kind, mapping.Resource, state.Err))
		}
	}
}

// observe reads from the watches what planning needs: the desired objects, and the
// parent's objects of their kinds, of the recorded ones and of further kinds.
func (p *pass) observe(desired []plan.Desired, further []schema.GroupVersionKind) map[inventory.Ref]plan.Observed {
	resources := map[schema.GroupVersionResource]schema.GroupKind{}
	for _, kind := range append(inventory.Kinds(p.recorded), further...) {
		if mapping, err := plan.Served(p.Mapper, kind); err == nil {
			resources[mapping.Resource] = kind.GroupKind()
		}
	}
	for i := range desired {
		resources[desired[i].Resource] = desired[i].Kind.GroupKind()
	}
	observed := map[inventory.Ref]plan.Observed{}
	for resource, kind := range resources {
		for _, object := range p.Informers.OwnedBy(resource, p.parent) {
			observed[inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}] = object.Observed
		}
	}
	for i := range desired {
		if object, found := p.live(&desired[i]); found {
			observed[desired[i].Ref] = object.Observed
		}
	}
	return observed
}

// live returns a desired object as last seen.
func (p *pass) live(object *plan.Desired) (*informers.Object, bool) {
	return p.Informers.Get(object.Resource, object.Ref.NamespacedName())
}

// ready reports whether all desired objects that exist are ready.
func (p *pass) ready(steps []plan.Step) bool {
	for _, step := range steps {
		if step.Desired == nil {
			continue
		}
		object, found := p.live(step.Desired)
		if !found {
			continue
		}
		if ready, _ := object.ReadyBy(step.Desired.ReadyWhen); !ready || object.Terminated && !step.Desired.Once {
			return false
		}
	}
	return true
}
