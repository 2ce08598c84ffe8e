package converge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/contention"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// execution carries out a plan.
type execution struct {
	*Converger
	client *apply.Client
	parent ownership.Parent
	now    time.Time
	result *Outcome
	hadJob bool // the parent has had a Job
}

// maxChanged is in how many passes in a row an object may change under the plan
// before that is a problem: something answers each request with a conflict.
const maxChanged = 3

// run carries out the steps and writes the new inventory into the result.
func (e *execution) run(ctx context.Context, steps []plan.Step, recorded []v0.ResourceStatus) {
	remaining := inventory.Index(recorded)
	e.hadJob = hadJob(recorded)
	var contended []*problem.Error
	var prunes []plan.Step
	for _, step := range steps {
		entry, known := remaining[step.Ref]
		switch {
		case step.Action == plan.Release || step.Action == plan.Delete:
			prunes = append(prunes, step)
			continue
		case step.Action == plan.Hold && !known:
			e.result.Uncreated++
			continue // it is created when the change may be made
		}
		delete(remaining, step.Ref)
		e.result.Resources = append(e.result.Resources, e.carryOut(ctx, step, entry, known))
		if found, ok := e.contention.Contended(e.objectKey(step), e.now); ok {
			contended = append(contended, problem.At(step.Desired.Place, contentionError(step, found)))
			e.result.Requeue(found.Over)
		}
	}
	for _, ref := range e.prune(ctx, prunes) {
		delete(remaining, ref)
	}
	e.result.Problems = append(e.result.Problems, contended...) // last: contention must not keep anything from being pruned
	for i := range recorded {
		if _, left := remaining[inventory.RefOf(recorded[i])]; left {
			e.keep(recorded[i])
		}
	}
	if len(e.result.Resources) > plan.FewObjects {
		for i := range e.result.Resources {
			e.result.Resources[i].Reason = text.Truncate(e.result.Resources[i].Reason, plan.MaxReason)
		}
	}
}

// keep keeps the entry of an object that is neither desired nor deleted, to find the
// object again. In an inventory that is full, only those are kept whose objects could
// not be found by their owner.
func (e *execution) keep(entry v0.ResourceStatus) {
	collected := e.parent.Collected(entry.Namespace)
	if entry.UID == "" && collected {
		return
	}
	if len(e.result.Resources) < plan.MaxRecorded || !collected || entry.Orphan {
		e.result.Resources = append(e.result.Resources, entry)
	}
}

// prune carries out the steps for objects that are no longer desired, and returns
// those that leave the inventory. A deletion that fails does not stop the others.
func (e *execution) prune(ctx context.Context, steps []plan.Step) (done []inventory.Ref) {
	// After a failed apply, what would be deleted may still be needed.
	mayDelete := len(e.result.Problems) == 0 && !e.result.Pending
	for _, step := range steps {
		message := "Released"
		if step.Action == plan.Delete {
			if !mayDelete {
				continue
			}
			deleted, err := e.delete(ctx, step)
			if err != nil {
				e.failed(step, step.Ref.String(), err)
				continue
			}
			if message = "Deleted"; !deleted {
				message, step.Action = "Released, because its parent does not own it", plan.Release
			}
		}
		if step.Disown {
			if err := e.disown(ctx, step); err != nil {
				e.failed(step, step.Ref.String(), err)
				continue
			}
		}
		e.memory.deleted(e.parent.UID, step.UID)
		log.FromContext(ctx).Info(message, "child", step.Ref.String(), "reason", step.Reason)
		e.Observer.Did(step.Action)
		done = append(done, step.Ref)
	}
	return done
}

// carryOut carries out a step for a desired object and returns its entry. Its
// error becomes a problem, or another pass.
func (e *execution) carryOut(ctx context.Context, step plan.Step, recorded v0.ResourceStatus, known bool) v0.ResourceStatus {
	entry, err := e.apply(ctx, step, recorded)
	if err == nil {
		return entry
	}
	entry.Reason = e.failed(step, step.Desired.Place, err)
	if known {
		entry.UID, entry.Hash, entry.ManagedFieldsHash = recorded.UID, recorded.Hash, recorded.ManagedFieldsHash
	}
	return entry
}

// failed records the error of a step, and returns the reason of its problem. An
// object that has changed since the plan leads to another pass, the first times.
func (e *execution) failed(step plan.Step, origin string, err error) (reason string) {
	if errors.Is(err, apply.ErrChanged) {
		if e.memory.changedAgain(e.parent.UID, step.Ref) <= maxChanged {
			e.result.Pending = true
			e.result.Requeue(FirstRetry)
			return "it has changed since it was read"
		}
		err = apply.KeepsChangingError(step.Ref.String(), err)
	}
	e.result.fail(origin, err)
	return e.result.Problems[len(e.result.Problems)-1].Reason
}

// objectKey returns the key of a step's object in the contention detector.
func (e *execution) objectKey(step plan.Step) contention.Object {
	return contention.Object{Parent: e.parent.UID, Ref: step.Ref}
}

func contentionError(step plan.Step, found contention.Contention) error {
	who, hint := "another client keeps deleting it or changing it back",
		"stop the other client, or leave the fields that it changes out of the template"
	switch {
	case found.Manager != "":
		who = found.Manager + " keeps changing it back"
	case templating.Keys("spec", "ttlSecondsAfterFinished").Lookup(step.Desired.Content) != nil:
		who, hint = "Kubernetes deletes it when it has finished (spec.ttlSecondsAfterFinished)", `annotate its template akri.sh/once: "true"`
	}
	return &problem.Error{
		Reason: v0.ReasonContended, // does not heal: repairs are rate-limited separately
		Mistake: finding.Mistake{
			Cause: fmt.Sprintf("%s was repaired %d times or more, with less than %d minutes in between, because %s",
				step.Ref, contention.MinRepairs, int(contention.Calm.Minutes()), who), // no count: the message must not change with each repair
			Hint: hint,
		},
	}
}

// apply carries out a step for a desired object and returns its entry.
func (e *execution) apply(ctx context.Context, step plan.Step, recorded v0.ResourceStatus) (v0.ResourceStatus, error) {
	want := step.Desired
	entry := v0.ResourceStatus{
		Group: step.Ref.Group, Version: want.Kind.Version, Kind: step.Ref.Kind,
		Namespace: step.Ref.Namespace, Name: step.Ref.Name, Template: want.Template, Orphan: want.Orphan,
	}
	if step.Repair {
		if wait := e.contention.Wait(e.objectKey(step), e.now); wait > 0 {
			e.result.Requeue(wait)
			step.Action = plan.Wait
		} else if step.Action == plan.Update && e.contention.NeedsManager(e.objectKey(step)) {
			e.findManager(ctx, step)
		}
	}
	switch step.Action {
	case plan.Wait:
		return e.waiting(step, e.kept(step, entry, recorded)), nil
	case plan.Keep, plan.Hold:
		return e.kept(step, entry, recorded), nil
	case plan.Skip:
		return skipped(entry), nil
	case plan.Recreate:
		e.Observer.Replaced(e.parent, step.Ref, step.Reason)
		return e.recreate(ctx, step, entry, step.Reason)
	}
	if orphaned, err := e.orphaned(ctx, step); err != nil || orphaned {
		return e.kept(step, entry, recorded), err
	}
	if found, err := e.former(ctx, step, &entry); err != nil || found {
		return entry, err
	}
	action, answer, err := e.client.Do(ctx, step)
	switch {
	case action == plan.Skip:
		return skipped(entry), nil
	case action == plan.Recreate && err != nil:
		return e.kept(step, entry, recorded), err
	case action == plan.Recreate:
		return e.recreate(ctx, step, entry, "the template changes an immutable field")
	case err != nil:
		return entry, err
	}
	if step.Repair {
		e.contention.Repaired(e.objectKey(step), e.now)
	}
	log.FromContext(ctx).Info("Applied", "child", step.Ref.String(), "action", step.Action.String(), "reason", step.Reason)
	e.Observer.Did(step.Action)
	var object *informers.Object
	if err := answer.Read(func(applied *unstructured.Unstructured) {
		object = e.Informers.RecordApplied(want.Resource, applied, want.ReadyWhen)
	}); err != nil {
		return entry, err
	}
	entry.UID, entry.Hash, entry.ManagedFieldsHash = string(object.UID), want.Hash, object.ManagedFieldsHash
	entry.Ready, entry.Reason = object.ReadyBy(want.ReadyWhen)
	e.memory.apply(e.parent.UID, entry, types.UID(recorded.UID))
	return entry, nil
}

// orphaned reports whether an object has no owner reference any more because its parent
// is being deleted with --cascade=orphan. The watch of the object may be ahead of that
// of the parent, and an apply would give the object to the garbage collector.
func (e *execution) orphaned(ctx context.Context, step plan.Step) (bool, error) {
	object, exists := e.live(step.Desired)
	if !exists || object.Owner != "" || step.Desired.Orphan || !e.parent.Collected(step.Ref.Namespace) {
		return false, nil
	}
	client, err := e.Clients.As(types.NamespacedName{}) // a ServiceAccount may not read parents
	if err != nil {
		return false, err
	}
	return client.Deleting(ctx, e.parent)
}

// kept returns the entry of an object that is left alone.
func (e *execution) kept(step plan.Step, entry, recorded v0.ResourceStatus) v0.ResourceStatus {
	entry.UID, entry.Hash, entry.ManagedFieldsHash = recorded.UID, recorded.Hash, recorded.ManagedFieldsHash
	object, exists := e.live(step.Desired)
	switch {
	case !exists && step.Repair:
		entry.Reason = "another client keeps deleting it"
	case !exists && step.Action == plan.Hold:
		entry.Reason = "it is created once the rollout allows it"
	case !exists:
		entry.Ready = true // applied once, and finished
	default:
		entry.Ready, entry.Reason = object.ReadyBy(step.Desired.ReadyWhen)
		if entry.Ready && object.Terminated && !step.Desired.Once {
			entry.Ready, entry.Reason = false, "the Pod has terminated and will be replaced"
		}
	}
	return entry
}

// waiting completes the entry of an object that waits: for the deletion of the
// object that has its name, or until it may be repaired again.
func (e *execution) waiting(step plan.Step, entry v0.ResourceStatus) v0.ResourceStatus {
	if !step.Repair {
		entry.Ready, entry.Reason = false, fmt.Sprintf("waiting for the former %s to go", step.Ref.Kind)
	}
	return entry
}

// skipped returns the entry of an object that belongs to another owner, if the
// template accepts that.
func skipped(entry v0.ResourceStatus) v0.ResourceStatus {
	entry.Ready, entry.Reason = true, "skipped: it belongs to another owner"
	return entry
}

// findManager records which client keeps changing an object back. Its failure does
// not affect the repair.
func (e *execution) findManager(ctx context.Context, step plan.Step) {
	manager, err := e.client.Managers(ctx, step.Desired.Resource, step.Ref.NamespacedName(), step.Desired.Content)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up the managers of a contended object", "child", step.Ref.String())
		return
	}
	e.contention.SetManager(e.objectKey(step), manager)
}

// recreate deletes an object that cannot be updated to the desired one. The watch
// sees the deletion, and the next pass creates the new object.
func (e *execution) recreate(ctx context.Context, step plan.Step, entry v0.ResourceStatus, reason string) (v0.ResourceStatus, error) {
	deleted, err := e.client.DeleteIf(ctx, step.Desired.Resource, step.Ref.NamespacedName(), func(live ownership.State) bool {
		return live.UID == step.UID && step.Claim.Owns(live)
	})
	if err != nil {
		return entry, err
	}
	if !deleted {
		return entry, apply.ErrChanged
	}
	e.memory.deleted(e.parent.UID, step.UID)
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", "to be recreated: "+reason)
	e.Observer.Did(plan.Recreate)
	entry.UID, entry.Reason = string(step.UID), "being replaced"
	return entry, nil
}

// delete deletes an object that is no longer desired. It reports whether the object
// is gone: an object that its parent does not own is left alone.
func (e *execution) delete(ctx context.Context, step plan.Step) (deleted bool, err error) {
	resource, exists, err := e.resource(step)
	if err != nil || !exists {
		return err == nil, err
	}
	return e.client.DeleteIf(ctx, resource, step.Ref.NamespacedName(), step.Claim.Deletes)
}

// disown makes an object that stays nobody's, unless its parent does not own it anyway.
func (e *execution) disown(ctx context.Context, step plan.Step) error {
	resource, exists, err := e.resource(step)
	if err != nil || !exists {
		return err
	}
	return e.client.DisownIf(ctx, resource, step.Ref.NamespacedName(), step.Claim.Deletes)
}

// resource returns the resource of an object that is no longer desired. exists is false
// if its kind no longer exists, and therefore neither does the object.
func (e *execution) resource(step plan.Step) (resource schema.GroupVersionResource, exists bool, err error) {
	mapping, err := plan.Served(e.Mapper, step.Kind)
	if meta.IsNoMatchError(err) {
		return resource, false, nil
	}
	if err != nil {
		return resource, false, fmt.Errorf("look up the resource of %s: %w", step.Kind, err)
	}
	// A kind whose scope has changed was deleted with its objects, and defined again.
	namespaced := mapping.Scope.Name() == meta.RESTScopeNameNamespace
	return mapping.Resource, namespaced == (step.Ref.Namespace != ""), nil
}
