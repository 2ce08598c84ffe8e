package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// instanceReconciler maintains the objects of one device.
type instanceReconciler struct {
	*parentMemory
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
			r.forget(ctx, ownership.Parent{Level: templating.InstanceLevel, NamespacedName: request.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	parent := ownership.InstanceParent(&instance)
	configuration, err := r.configuration(ctx, &instance)
	if err != nil {
		return reconcile.Result{}, err
	}
	if r.observe(ctx, parent, configuration) {
		return reconcile.Result{RequeueAfter: converge.FirstRetry}, nil // until then, its predecessor's objects are in the way
	}
	stored, status, ok := r.instances.latest(&instance, instance.Status)
	if !ok {
		return reconcile.Result{RequeueAfter: readAgain}, nil
	}
	if instance.DeletionTimestamp != nil {
		return r.finalize(ctx, parent, configuration, &instance, stored, status)
	}
	if configuration != nil && !v0.Active(configuration) {
		return reconcile.Result{}, nil // the agents withdraw the Instance
	}
	if configuration != nil && accountChanged(&instance, configuration) {
		if err := r.client.Finalize(ctx, parent, account(configuration)); err != nil {
			return reconcile.Result{}, ignoreGone(err)
		}
	}
	if configuration != nil {
		defer r.gate.Done(configuration.UID, instance.Name)
	}
	device, again := r.departures.observe(&instance, time.Now())
	if device == uncertain {
		return reconcile.Result{RequeueAfter: again}, nil
	}

	// 2. Render; 3. plan; 4. apply.
	record := func(resources []v0.ResourceStatus) error {
		status.Resources = resources
		if err := r.write(ctx, parent, status); err != nil {
			return err
		}
		stored = status
		return nil
	}
	result, err := r.renderAndConverge(ctx, parent, &instance, configuration, device, status.Resources, record)
	if err != nil {
		return reconcile.Result{}, ignoreGone(err)
	}
	if result.Pending {
		return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil // the watch requeues it when it has synced
	}

	// 5. Report what has changed.
	current, err := r.report(ctx, parent, configuration, &instance, stored, &result)
	if err != nil {
		return reconcile.Result{}, err
	}
	if configuration != nil {
		r.passed(parent, configuration, result, current)
	}
	return reconcile.Result{RequeueAfter: sooner(result.RequeueAfter, again)}, nil
}

// passed tells the rollout gate and the group the result of a pass. current reports whether
// its conditions are in the API server.
func (r *instanceReconciler) passed(parent ownership.Parent, configuration *v0.Configuration, result converge.Outcome, current bool) {
	// A failed apply does not change the Instance's place in the rollout.
	if !result.Held && len(result.Problems) == 0 {
		r.gate.Report(configuration.UID, parent.Name, readyObjects(result, applied(result)).status)
	}
	if current {
		r.reconciled(parent, configuration)
	}
}

// finalize removes what garbage collection does not remove with the Instance.
func (r *instanceReconciler) finalize(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, instance *v0.Instance, stored, status v0.InstanceStatus,
) (reconcile.Result, error) {
	if configuration != nil {
		r.gate.RemoveInstance(configuration.UID, instance.Name) // a rollout does not wait for it
	}
	account := deletingAccount(instance, configuration)
	if deletesDependents(instance) {
		r.converger.Collect(ctx, parent, account)
	}
	if !slices.Contains(instance.Finalizers, v0.FinalizerCleanup) {
		return reconcile.Result{}, nil // garbage collection removes its objects
	}
	result := r.converger.Finalize(ctx, parent, account, status.Resources, r.orphans(parent))
	if _, err := r.report(ctx, parent, configuration, instance, stored, &result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil
}

// deletesDependents reports whether garbage collection deletes the objects of an
// Instance before the Instance itself: it was deleted with foreground propagation.
func deletesDependents(instance *v0.Instance) bool {
	return slices.Contains(instance.Finalizers, metav1.FinalizerDeleteDependents) &&
		!slices.Contains(instance.Finalizers, metav1.FinalizerOrphanDependents)
}

// configuration returns the Instance's Configuration, or nil if there is none. It is
// shared with the cache, because a copy for each Instance would cost more than the
// rest of a pass: the caller must not change it.
func (r *instanceReconciler) configuration(ctx context.Context, instance *v0.Instance) (*v0.Configuration, error) {
	var configuration v0.Configuration
	name := groupOf(instance)
	err := r.cache.Get(ctx, name, &configuration, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	return &configuration, nil
}

// renderAndConverge renders the templates for the Instance and converges its objects. If its
// device has departed, there are none.
func (r *instanceReconciler) renderAndConverge(
	ctx context.Context, parent ownership.Parent, instance *v0.Instance, configuration *v0.Configuration, device presence,
	recorded []v0.ResourceStatus, record func([]v0.ResourceStatus) error,
) (converge.Outcome, error) {
	if configuration == nil {
		return converge.Outcome{Resources: recorded, Problems: []*problem.Error{{
			Reason: v0.ReasonConfigurationNotFound,
			Mistake: finding.Mistake{
				Path:  "spec.configurationName",
				Cause: fmt.Sprintf("there is no Configuration %q in namespace %q", instance.Spec.ConfigurationName, instance.Namespace),
			},
		}}}, nil
	}
	compiled := r.templates.Get(configuration)
	if len(compiled.Problems) > 0 {
		// Existing objects stay until the templates are fixed.
		return converge.Outcome{Resources: recorded, Problems: compiled.Problems}, nil
	}
	request := converge.Request{
		Account:   account(configuration),
		Templates: compiled,
		Kinds:     r.kinds.of(groupOf(instance)),
		Record:    record,
	}
	if device != departed { // a rollout does not keep the objects of a device that has left
		request.MayChange = r.mayChange(configuration, instance.Name)
		request.Rendered, request.Diagnostics = compiled.Instance.Render(templates.InstanceValues(configuration, instance))
	}
	return r.converger.Converge(ctx, parent, request, recorded)
}
