package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// instanceReconciler maintains the objects of one device.
type instanceReconciler struct {
	*memory
	cache  client.Reader
	client *apply.Client // acts as the controller
	events eventRecorder
}

// Reconcile brings the objects of an Instance to what its Configuration specifies.
func (r *instanceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var instance v0.Instance
	if err := r.cache.Get(ctx, request.NamespacedName, &instance); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(ownership.Parent{Level: templating.InstanceLevel, NamespacedName: request.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	parent := ownership.InstanceParent(&instance)
	r.see(parent)
	status := r.instances.latest(instance.UID, instance.Status)
	configuration, err := r.configuration(ctx, &instance)
	if err != nil {
		return reconcile.Result{}, err
	}
	if instance.DeletionTimestamp != nil {
		return r.finalize(ctx, parent, account(configuration), &instance, status)
	}

	// 2. Render; 3. plan; 4. apply.
	result := r.converge(ctx, parent, &instance, configuration, status.Resources)
	if result.Announce {
		status.Resources = result.Resources
		if err := r.converger.Announce(ctx, parent, func() error { return r.write(ctx, parent, status) }); err != nil {
			return reconcile.Result{}, err
		}
		result = r.converge(ctx, parent, &instance, configuration, status.Resources)
	}
	if result.Pending {
		return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil // the watch requeues it when it has synced
	}

	// 5. Report what has changed.
	if err := r.report(ctx, parent, &instance, status, result); err != nil {
		return reconcile.Result{}, err
	}
	// A failed apply does not change the Instance's place in the rollout.
	if configuration != nil && !result.Held && len(result.Problems) == 0 {
		r.gate.Settle(client.ObjectKeyFromObject(configuration), instance.Name, readyObjects(result, applied(result)).status)
	}
	return reconcile.Result{RequeueAfter: result.RequeueAfter}, problem.Retry(result.Problems)
}

// finalize removes what garbage collection does not remove with the Instance.
func (r *instanceReconciler) finalize(
	ctx context.Context, parent ownership.Parent, account types.NamespacedName, instance *v0.Instance, status v0.InstanceStatus,
) (reconcile.Result, error) {
	if !slices.Contains(instance.Finalizers, v0.FinalizerElsewhere) {
		return reconcile.Result{}, nil // garbage collection removes its objects
	}
	result := r.converger.Finalize(ctx, parent, account, status.Resources)
	if err := r.report(ctx, parent, instance, status, result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, problem.Retry(result.Problems)
}

// configuration returns the Instance's Configuration, or nil if there is none.
func (r *instanceReconciler) configuration(ctx context.Context, instance *v0.Instance) (*v0.Configuration, error) {
	var configuration v0.Configuration
	name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
	err := r.cache.Get(ctx, name, &configuration)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	return &configuration, nil
}

// converge renders the templates for the Instance and converges its objects.
func (r *instanceReconciler) converge(
	ctx context.Context, parent ownership.Parent, instance *v0.Instance, configuration *v0.Configuration, recorded []v0.ResourceStatus,
) converge.Outcome {
	if configuration == nil {
		return converge.Outcome{Resources: recorded, Problems: []problem.Problem{{
			Reason: v0.ReasonUnknownOwner,
			Message: fmt.Sprintf("spec.configurationName: there is no Configuration %q in namespace %q",
				instance.Spec.ConfigurationName, instance.Namespace),
		}}}
	}
	compiled := r.templates.Get(configuration)
	if len(compiled.Problems) > 0 {
		return converge.Outcome{Resources: recorded, Problems: compiled.Problems} // existing objects stay until the templates are fixed
	}
	want := converge.Wanted{
		Account:   account(configuration),
		Templates: compiled,
		MayChange: r.mayChange(ctx, configuration, instance.Name),
	}
	want.Rendered, want.Diagnostics = compiled.Instance.Render(templates.InstanceValues(configuration, instance))
	return r.converger.Converge(ctx, parent, want, recorded)
}

// mayChange returns a function that reports whether an Instance may be changed now,
// or nil if the Configuration does not limit its rollouts.
func (r *instanceReconciler) mayChange(ctx context.Context, configuration *v0.Configuration, instance string) func(ready bool) bool {
	group := client.ObjectKeyFromObject(configuration)
	if configuration.Spec.Rollout == nil || configuration.Spec.Rollout.MaxUnavailable == nil {
		r.gate.Forget(group)
		return nil
	}
	return func(ready bool) bool {
		instances, err := instancesOf(ctx, r.cache, group)
		if err != nil {
			return false // the cache is stopping
		}
		all := make([]string, len(instances))
		for i := range instances {
			all[i] = instances[i].Name
		}
		limit, err := rollout.MaxUnavailable(*configuration.Spec.Rollout.MaxUnavailable, len(all))
		if err != nil {
			return true // the schema refuses such values
		}
		r.gate.Know(group, instance, ready)
		return r.gate.Pass(group, instance, all, limit)
	}
}

// report writes the Instance's status if it has changed, and takes the finalizer
// off when no object needs it any more.
func (r *instanceReconciler) report(
	ctx context.Context, parent ownership.Parent, instance *v0.Instance, before v0.InstanceStatus, result converge.Outcome,
) error {
	now := v0.InstanceStatus{Resources: result.Resources, Conditions: instanceConditions(before.Conditions, result)}
	if !equality.Semantic.DeepEqual(before, now) {
		if err := r.write(ctx, parent, now); err != nil {
			return err
		}
		r.events.conditionsChanged(instance, before.Conditions, now.Conditions)
	}
	return r.converger.Release(ctx, parent, instance.Finalizers, now.Resources)
}

func (r *instanceReconciler) write(ctx context.Context, parent ownership.Parent, status v0.InstanceStatus) error {
	if err := r.client.PatchStatus(ctx, parent, status.Conditions, status.Resources); err != nil {
		return err
	}
	r.instances.remember(parent.UID, status)
	return nil
}
