package controller

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
)

// readAgain is the delay before a parent is read again that has changed since it was
// read from the cache.
const readAgain = time.Millisecond

// report writes the Instance's status if it has changed, and takes the finalizer off
// when no object needs it any more. It requeues the Instance if a problem may heal,
// or if the report waits for a later one: it is then kept in memory, and another
// leader would compute it again. current reports whether the conditions in the API server
// are those of this pass.
func (r *instanceReconciler) report(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, instance *v0.Instance, stored v0.InstanceStatus,
	result *converge.Outcome,
) (current bool, err error) {
	shown, complete := r.shown(parent, result)
	now := v0.InstanceStatus{Resources: result.Resources, Conditions: stored.Conditions, DisplayName: stored.DisplayName,
		FreeSlots: new(v0.FreeSlots(instance))}
	if configuration != nil {
		now.DisplayName = r.templates.Get(configuration).DisplayName(configuration, instance)
	}
	if !complete {
		r.instances.hold(parent.UID, now, progress, time.Now())
		return false, nil
	}
	now.Conditions = instanceConditions(stored.Conditions, shown)
	if equality.Semantic.DeepEqual(stored, now) {
		r.instances.release(parent.UID)
		return true, r.converger.Release(ctx, parent, instance.Finalizers, now.Resources)
	}
	urgent := urgencyOf(stored.Conditions, now.Conditions, stored.Resources, now.Resources)
	if wait := r.instances.hold(parent.UID, now, urgent, time.Now()); wait > 0 {
		result.Requeue(wait)
		return equality.Semantic.DeepEqual(stored.Conditions, now.Conditions), nil
	}
	if err := r.write(ctx, parent, now); err != nil {
		return false, err
	}
	r.events.conditionsChanged(ctx, instance, stored.Conditions, now.Conditions)
	return true, r.converger.Release(ctx, parent, instance.Finalizers, now.Resources)
}

func (r *instanceReconciler) write(ctx context.Context, parent ownership.Parent, status v0.InstanceStatus) error {
	version, err := r.client.PatchStatus(ctx, parent, map[string]any{
		"conditions": status.Conditions, "resources": status.Resources, "displayName": status.DisplayName, "freeSlots": status.FreeSlots,
	})
	if err == nil && version != "" {
		r.instances.remember(parent.UID, status, version, time.Now())
	}
	return err
}

// report writes the controller's part of the Configuration's status like that of an
// Instance.
func (r *configurationReconciler) report(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration,
	stored, now v0.ConfigurationStatus, result *converge.Outcome,
) error {
	conditions := slices.Clone(stored.Conditions)
	for _, condition := range now.Conditions {
		meta.SetStatusCondition(&conditions, condition)
	}
	if meta.IsStatusConditionTrue(conditions, v0.ConditionAccepted) {
		meta.RemoveStatusCondition(&conditions, v0.ConditionStalled)
	}
	now.Conditions = conditions
	if equality.Semantic.DeepEqual(stored, now) {
		r.configurations.release(parent.UID)
		return r.converger.Release(ctx, parent, configuration.Finalizers, now.Resources)
	}
	urgent := urgencyOf(stored.Conditions, now.Conditions, stored.Resources, now.Resources)
	if stored.ObservedGeneration != now.ObservedGeneration || configuration.DeletionTimestamp != nil {
		urgent = min(urgent, settling)
	}
	if wait := r.configurations.hold(parent.UID, now, urgent, time.Now()); wait > 0 {
		result.Requeue(wait)
		return nil
	}
	if err := r.write(ctx, parent, stored, now); err != nil {
		return err
	}
	r.events.conditionsChanged(ctx, configuration, stored.Conditions, now.Conditions)
	return r.converger.Release(ctx, parent, configuration.Finalizers, now.Resources)
}

// write writes what differs from the stored status: the inventory of a group may be
// large.
func (r *configurationReconciler) write(ctx context.Context, parent ownership.Parent, stored, status v0.ConfigurationStatus) error {
	fields := map[string]any{
		"observedGeneration": status.ObservedGeneration,
		"instances":          status.Instances,
		"readyInstances":     status.ReadyInstances,
		"failingInstances":   status.FailingInstances,
		"conditions":         status.Conditions,
	}
	if !equality.Semantic.DeepEqual(stored.Resources, status.Resources) {
		fields["resources"] = status.Resources
	}
	version, err := r.client.PatchStatus(ctx, parent, fields)
	if err == nil && version != "" {
		r.configurations.remember(parent.UID, status, version, time.Now())
	}
	return err
}

// shown returns the outcome of a pass with the problems that are reported, and
// requeues the parent if one may heal. complete is false if the API server did not
// answer, not long enough to say so: nothing can be reported then.
func (m *parentMemory) shown(parent ownership.Parent, result *converge.Outcome) (shown converge.Outcome, complete bool) {
	wait, problems := m.retries.record(parent.UID, result.Problems, time.Now())
	if wait > 0 {
		result.Requeue(wait)
	}
	shown = *result
	shown.Problems = problems
	return shown, len(problems) > 0 || len(result.Problems) == 0
}
