package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
)

// instanceReconciler keeps the objects of one device.
type instanceReconciler struct {
	cache     client.Reader
	templates *templates.Cache
	objects   *objects
	gate      *rollout.Gate
	said      *memory[v0.InstanceStatus]
}

// Reconcile brings the objects of an Instance to what its Configuration asks
// for.
func (r *instanceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var instance v0.Instance
	if err := r.cache.Get(ctx, request.NamespacedName, &instance); err != nil {
		r.objects.endings.forget(r.said.forget(request.NamespacedName))
		r.gate.Gone(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	status := r.said.latest(request.NamespacedName, instance.UID, instance.Status)
	configuration, err := r.configuration(ctx, &instance)
	if err != nil {
		return reconcile.Result{}, err
	}
	parent := ownership.InstanceParent(&instance)
	if instance.DeletionTimestamp != nil {
		return r.leave(ctx, parent, account(configuration), &instance, status)
	}

	// 2. Render; 3. plan; 4. apply.
	result := r.bring(ctx, parent, &instance, configuration, status.Resources)
	if result.announce {
		status.Resources = result.resources
		if err := r.objects.announce(ctx, parent, func() error { return r.write(ctx, parent, status) }); err != nil {
			return reconcile.Result{}, err
		}
		result = r.bring(ctx, parent, &instance, configuration, status.Resources)
	}
	if result.pending {
		return reconcile.Result{RequeueAfter: result.again}, nil // the watch that is starting wakes us
	}

	// 5. Report, if there is news.
	if err := r.report(ctx, parent, &instance, status, result); err != nil {
		return reconcile.Result{}, err
	}
	// What could not be applied leaves the objects as available, or as much in the
	// middle of a change, as they were.
	if configuration != nil && !result.held && len(result.problems) == 0 {
		r.gate.Settle(groupName(configuration), instance.Name, readyObjects(result, applied(result)).status)
	}
	return reconcile.Result{RequeueAfter: result.again}, problem.Retry(result.problems)
}

// leave removes what garbage collection does not remove with the Instance.
func (r *instanceReconciler) leave(ctx context.Context, parent ownership.Parent, account types.NamespacedName, instance *v0.Instance, status v0.InstanceStatus) (reconcile.Result, error) {
	if !slices.Contains(instance.Finalizers, v0.FinalizerElsewhere) {
		return reconcile.Result{}, nil // its objects are owned by it and go with it
	}
	result := r.objects.clear(ctx, parent, account, status.Resources)
	if err := r.report(ctx, parent, instance, status, result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, problem.Retry(result.problems)
}

// configuration is the Instance's Configuration, or nil if there is none.
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

func (r *instanceReconciler) bring(ctx context.Context, parent ownership.Parent, instance *v0.Instance, configuration *v0.Configuration, recorded []v0.ResourceStatus) outcome {
	if configuration == nil {
		return outcome{resources: recorded, problems: []problem.Problem{{
			Reason:  v0.ReasonUnknownOwner,
			Message: fmt.Sprintf("spec.configurationName: there is no Configuration %q in namespace %q", instance.Spec.ConfigurationName, instance.Namespace),
		}}}
	}
	compiled := r.templates.Get(configuration)
	if len(compiled.Problems) > 0 {
		return outcome{resources: recorded, problems: compiled.Problems} // what exists stays until the templates are mended
	}
	want := wanted{account: account(configuration), templates: compiled, turn: r.turn(ctx, configuration, instance.Name)}
	want.rendered, want.diagnostics = compiled.Instance.Render(templates.InstanceValues(configuration, instance))
	return r.objects.bring(ctx, parent, want, recorded)
}

// turn asks whether an Instance may be changed now; nil if the Configuration does
// not limit its rollouts.
func (r *instanceReconciler) turn(ctx context.Context, configuration *v0.Configuration, instance string) func(ready bool) bool {
	group := groupName(configuration)
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
		most, err := rollout.Most(*configuration.Spec.Rollout.MaxUnavailable, len(all))
		if err != nil {
			return true // the schema refuses such values
		}
		r.gate.Know(group, instance, ready)
		return r.gate.Pass(group, instance, all, most)
	}
}

// report writes the Instance's status if it says something new, and takes the
// finalizer off when nothing is left that needs it.
func (r *instanceReconciler) report(ctx context.Context, parent ownership.Parent, instance *v0.Instance, before v0.InstanceStatus, result outcome) error {
	now := v0.InstanceStatus{Resources: result.resources}
	now.Conditions = append(now.Conditions, before.Conditions...)
	appliedVerdict := applied(result)
	meta.SetStatusCondition(&now.Conditions, appliedVerdict.condition(v0.ConditionApplied, 0))
	meta.SetStatusCondition(&now.Conditions, readyObjects(result, appliedVerdict).condition(v0.ConditionReady, 0))
	if !equality.Semantic.DeepEqual(before, now) {
		if err := r.write(ctx, parent, now); err != nil {
			return err
		}
		r.objects.tell.news(instance, before.Conditions, now.Conditions)
	}
	return r.objects.release(ctx, parent, instance.Finalizers, now.Resources)
}

func (r *instanceReconciler) write(ctx context.Context, parent ownership.Parent, status v0.InstanceStatus) error {
	if err := r.objects.clients.Own().PatchStatus(ctx, parent, status.Conditions, status.Resources); err != nil {
		return err
	}
	r.said.remember(parent.NamespacedName, parent.UID, status)
	return nil
}
