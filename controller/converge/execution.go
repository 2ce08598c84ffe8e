package converge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/contention"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
)

// execution carries out a plan.
type execution struct {
	*Converger
	client    *apply.Client
	parent    ownership.Parent
	templates *templates.Templates
	now       time.Time
	result    *Outcome
}

// run carries out the steps and writes the new inventory into the result.
func (e *execution) run(ctx context.Context, steps []plan.Step, recorded []v0.ResourceStatus) {
	remaining := inventory.Index(recorded)
	var contended []problem.Problem
	for _, step := range steps {
		entry, known := remaining[step.Ref]
		switch {
		case step.Action == plan.Release || step.Action == plan.Delete:
			if e.prune(ctx, step) {
				delete(remaining, step.Ref)
			}
			continue
		case step.Action == plan.Hold && !known:
			continue // it is created when the change may be made
		}
		delete(remaining, step.Ref)
		e.result.Resources = append(e.result.Resources, e.converge(ctx, step, entry, known))
		if found, ok := e.contention.Contended(e.contended(step), e.now); ok {
			contended = append(contended, problem.Of(e.origin(step), contentionError(step.Ref, found)))
			e.result.Requeue(found.Over)
		}
	}
	e.result.Problems = append(e.result.Problems, contended...) // last: contention must not keep anything from being pruned
	for entry := range maps.Values(remaining) {                 // neither desired nor deleted: kept, to find the object again
		if entry.UID != "" || e.parent.Elsewhere(entry.Namespace) {
			e.result.Resources = append(e.result.Resources, entry)
		}
	}
}

// prune carries out a step for an object that is no longer desired. It reports
// whether the object leaves the inventory.
func (e *execution) prune(ctx context.Context, step plan.Step) bool {
	if step.Action == plan.Release {
		log.FromContext(ctx).Info("Released", "child", step.Ref.String(), "reason", step.Reason)
		e.Observer.Did(step.Action)
		return true
	}
	if len(e.result.Problems) > 0 || e.result.Pending {
		return false // an apply has failed: what would be deleted may still be needed
	}
	if err := e.delete(ctx, step); err != nil {
		e.result.fail(step.Ref.String(), err)
		return false
	}
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", step.Reason)
	e.Observer.Did(step.Action)
	return true
}

// converge carries out a step for a desired object and returns its entry. Its
// error becomes a problem, or another pass.
func (e *execution) converge(ctx context.Context, step plan.Step, recorded v0.ResourceStatus, known bool) v0.ResourceStatus {
	entry, err := e.apply(ctx, step, recorded)
	switch {
	case errors.Is(err, apply.ErrChanged):
		e.result.Pending = true
		e.result.Requeue(FirstRetry)
	case err != nil:
		e.result.fail(e.origin(step), err)
		entry.Reason = e.result.Problems[len(e.result.Problems)-1].Reason
		if known {
			entry.UID, entry.Intent, entry.Fields = recorded.UID, recorded.Intent, recorded.Fields
		}
	}
	return entry
}

// origin returns the template of a desired object, as its author names it.
func (e *execution) origin(step plan.Step) string {
	return e.templates.Name(e.parent.Level, int(step.Desired.Template))
}

// contended returns the key of a step's object in the contention detector.
func (e *execution) contended(step plan.Step) contention.Object {
	return contention.Object{Parent: e.parent.UID, Ref: step.Ref}
}

func contentionError(object inventory.Ref, found contention.Contention) error {
	who := "another client keeps deleting it or changing it back"
	if found.Manager != "" {
		who = found.Manager + " keeps changing it back"
	}
	return &problem.Error{
		Reason: v0.ReasonContested, // does not heal: repairs are rate-limited separately
		Cause: fmt.Sprintf("%s was repaired %d times in %v because %s",
			object, found.Repairs, found.Since.Round(time.Second), who),
		Hint: "stop the other client, or leave the fields that it changes out of the template",
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
		if wait := e.contention.Repair(e.contended(step), e.now); wait > 0 {
			e.result.Requeue(wait)
			step.Action = plan.Wait
		} else if step.Action == plan.Update && e.contention.NeedsManager(e.contended(step)) {
			e.findManager(ctx, step)
		}
	}
	switch step.Action {
	case plan.Keep, plan.Wait, plan.Hold:
		return e.kept(step, entry, recorded), nil
	case plan.Skip:
		return skipped(entry), nil
	case plan.Recreate:
		e.Observer.Replaced(e.parent, step.Ref, step.Reason)
		return e.recreate(ctx, step, entry, step.Reason)
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
	log.FromContext(ctx).Info("Applied", "child", step.Ref.String(), "action", step.Action.String(), "reason", step.Reason)
	e.Observer.Did(step.Action)
	object := e.Informers.Note(want.Resource, answer, want.ReadyWhen)
	entry.UID, entry.Intent, entry.Fields = string(object.UID), want.Intent, object.Fields
	entry.Ready, entry.Reason = object.ReadyBy(want.ReadyWhen)
	return entry, nil
}

// kept returns the entry of an object that is left alone.
func (e *execution) kept(step plan.Step, entry, recorded v0.ResourceStatus) v0.ResourceStatus {
	entry.UID, entry.Intent, entry.Fields = recorded.UID, recorded.Intent, recorded.Fields
	object, exists := e.live(step.Desired)
	switch {
	case !exists && step.Repair:
		entry.Reason = "another client keeps deleting it"
	case !exists:
		entry.Ready = true // applied once, and finished
	default:
		entry.Ready, entry.Reason = object.ReadyBy(step.Desired.ReadyWhen)
		if entry.Ready && object.Ended && !step.Desired.Once {
			entry.Ready, entry.Reason = false, "the Pod has terminated and will be replaced"
		}
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
	e.contention.SetManager(e.contended(step), manager)
}

// recreate deletes an object that cannot be updated to the desired one. The watch
// sees the deletion, and the next pass creates the new object.
func (e *execution) recreate(ctx context.Context, step plan.Step, entry v0.ResourceStatus, reason string) (v0.ResourceStatus, error) {
	if err := e.client.Delete(ctx, step.Desired.Resource, step.Ref.NamespacedName(), step.UID); err != nil {
		return entry, err
	}
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", "to be recreated: "+reason)
	e.Observer.Did(plan.Recreate)
	entry.UID, entry.Reason = string(step.UID), "being replaced"
	return entry, nil
}

// delete deletes an object that is no longer desired.
func (e *execution) delete(ctx context.Context, step plan.Step) error {
	mapping, err := e.Mapper.RESTMapping(step.Kind.GroupKind(), step.Kind.Version)
	if meta.IsNoMatchError(err) {
		return nil // the kind no longer exists, and neither do its objects
	}
	if err != nil {
		return fmt.Errorf("look up the resource of %s: %w", step.Kind, err)
	}
	if step.UID == "" {
		return e.client.DeleteOwned(ctx, mapping.Resource, step.Ref.NamespacedName(), step.Claim)
	}
	return e.client.Delete(ctx, mapping.Resource, step.Ref.NamespacedName(), step.UID)
}
