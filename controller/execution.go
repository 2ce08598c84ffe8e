package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/fight"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
)

// execution carries a plan out.
type execution struct {
	*objects
	client    *apply.Client
	parent    ownership.Parent
	templates *templates.Templates
	now       time.Time
	result    *outcome
}

// run carries the steps out and writes the new inventory into the result.
func (e *execution) run(ctx context.Context, steps []plan.Step, recorded []v0.ResourceStatus) {
	remaining := inventory.Index(recorded)
	var contested []problem.Problem
	for _, step := range steps {
		entry, known := remaining[step.Ref]
		switch step.Action {
		case plan.Release:
			log.FromContext(ctx).Info("Released", "child", step.Ref.String(), "reason", step.Reason)
			e.metrics.did(step.Action)
			delete(remaining, step.Ref)
			continue
		case plan.Delete:
			if len(e.result.problems) > 0 || e.result.pending {
				continue // an apply has failed: what would be deleted may still be needed
			}
			if err := e.delete(ctx, step); err != nil {
				e.result.fail(step.Ref.String(), err)
				continue
			}
			log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", step.Reason)
			e.metrics.did(step.Action)
			delete(remaining, step.Ref)
			continue
		case plan.Hold:
			if !known {
				continue // to be made when it is our turn
			}
		}
		delete(remaining, step.Ref)
		now, err := e.apply(ctx, step, entry)
		switch {
		case errors.Is(err, apply.ErrChanged):
			e.result.pending = true
			e.result.soon(firstRetry)
		case err != nil:
			e.result.fail(e.templates.Name(e.parent.Level, int(step.Desired.Template)), err)
			now.Reason = e.result.problems[len(e.result.problems)-1].Reason
			if known {
				now.UID, now.Intent, now.Fields = entry.UID, entry.Intent, entry.Fields
			}
		}
		if fight, goes := e.fights.Goes(step.Ref, e.now); goes {
			contested = append(contested, problem.Of(e.templates.Name(e.parent.Level, int(step.Desired.Template)), contestedError(step.Ref, fight)))
			e.result.soon(fight.Over)
		}
		e.result.resources = append(e.result.resources, now)
	}
	e.result.problems = append(e.result.problems, contested...) // told last: a fight keeps nothing from being pruned
	for entry := range maps.Values(remaining) {                 // neither wanted nor deleted: kept, so that it can be found again
		if entry.UID != "" || e.parent.Elsewhere(entry.Namespace) {
			e.result.resources = append(e.result.resources, entry)
		}
	}
}

func contestedError(object inventory.Ref, fight fight.Fight) error {
	who := "somebody keeps deleting it or changing it back"
	if fight.By != "" {
		who = fight.By + " keeps changing it back"
	}
	return &problem.Error{
		Reason: v0.ReasonContested, // does not heal: the controller repairs at its own pace
		Cause: fmt.Sprintf("%s was repaired %d times in %v, since %s: stop the other, or leave those fields out of the template",
			object, fight.Repairs, fight.Since.Round(time.Second), who),
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
		if wait := e.fights.Repair(step.Ref, e.now); wait > 0 {
			e.result.soon(wait)
			step.Action = plan.Wait
		} else if step.Action == plan.Update && e.fights.Asks(step.Ref) {
			e.blame(ctx, step)
		}
	}
	switch step.Action {
	case plan.Keep, plan.Wait, plan.Hold:
		return e.kept(step, entry, recorded), nil
	case plan.Skip:
		return skipped(entry), nil
	case plan.Recreate:
		e.tell.ended(e.parent, step.Ref.String(), step.Reason)
		return e.recreate(ctx, step, entry, step.Reason)
	}
	action, answer, err := e.client.Do(ctx, step)
	switch {
	case action == plan.Skip:
		return skipped(entry), nil
	case action == plan.Recreate && err != nil:
		return e.kept(step, entry, recorded), err
	case action == plan.Recreate:
		return e.recreate(ctx, step, entry, "the template changes a field that is immutable")
	case err != nil:
		return entry, err
	}
	log.FromContext(ctx).Info("Applied", "child", step.Ref.String(), "action", step.Action.String(), "reason", step.Reason)
	e.metrics.did(step.Action)
	object := e.informers.Trim(want.Resource, answer)
	e.informers.Note(want.Resource, object)
	entry.UID, entry.Intent, entry.Fields = string(object.UID), want.Intent, object.Fields
	entry.Ready, entry.Reason = object.ReadyBy(want.ReadyWhen)
	return entry, nil
}

// kept is the entry of an object that is left as it is.
func (e *execution) kept(step plan.Step, entry, recorded v0.ResourceStatus) v0.ResourceStatus {
	entry.UID, entry.Intent, entry.Fields = recorded.UID, recorded.Intent, recorded.Fields
	object, exists := e.live(step.Desired)
	switch {
	case !exists && step.Repair:
		entry.Reason = "somebody keeps deleting it"
	case !exists:
		entry.Ready = true // made once, and gone by itself
	default:
		entry.Ready, entry.Reason = object.ReadyBy(step.Desired.ReadyWhen)
		if entry.Ready && object.Ended && !step.Desired.Once {
			entry.Ready, entry.Reason = false, "the Pod has come to its end and is to be replaced"
		}
	}
	return entry
}

// blame finds out who changes an object back. That it cannot be found out hinders
// nothing.
func (e *execution) blame(ctx context.Context, step plan.Step) {
	who, err := e.client.Rivals(ctx, step.Desired.Resource, types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name}, step.Desired.Content)
	if err != nil {
		log.FromContext(ctx).Error(err, "Who keeps changing it is unknown", "child", step.Ref.String())
		return
	}
	e.fights.Blame(step.Ref, who)
}

// recreate deletes an object that cannot become what is wanted. Its deletion is
// seen by the watch, and the next pass makes the new one.
func (e *execution) recreate(ctx context.Context, step plan.Step, entry v0.ResourceStatus, reason string) (v0.ResourceStatus, error) {
	if err := e.client.Delete(ctx, step.Desired.Resource, types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name}, step.UID); err != nil {
		return entry, err
	}
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", "it is made anew: "+reason)
	e.metrics.did(plan.Recreate)
	entry.UID, entry.Reason = string(step.UID), "being replaced"
	return entry, nil
}

func (e *execution) delete(ctx context.Context, step plan.Step) error {
	mapping, err := e.mapper.RESTMapping(step.Kind.GroupKind(), step.Kind.Version)
	if meta.IsNoMatchError(err) {
		return nil // the kind has gone, and its objects with it
	}
	if err != nil {
		return fmt.Errorf("ask the API server for %s: %w", step.Kind, err)
	}
	name := types.NamespacedName{Namespace: step.Ref.Namespace, Name: step.Ref.Name}
	if step.UID == "" {
		return e.client.DeleteOwned(ctx, mapping.Resource, name, step.Claim)
	}
	return e.client.Delete(ctx, mapping.Resource, name, step.UID)
}

// skipped is the entry of an object that is somebody else's, which is well.
func skipped(entry v0.ResourceStatus) v0.ResourceStatus {
	entry.Ready, entry.Reason = true, "left to its owner"
	return entry
}
