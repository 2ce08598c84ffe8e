package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/templating"
)

// instanceReconciler maintains the objects of one device.
type instanceReconciler struct {
	*parentReconciler
}

// Reconcile brings the objects of an Instance to what its Configuration specifies.
func (r instanceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, r, ownership.Parent{Level: templating.InstanceLevel, NamespacedName: request.NamespacedName})
}

// read implements parentKind. The Configuration is shared with the cache, because a copy
// for each Instance would cost more than the rest of a pass.
func (r instanceReconciler) read(ctx context.Context, name types.NamespacedName) (*pass, error) {
	var instance v0.Instance
	if err := r.cache.Get(ctx, name, &instance); err != nil {
		return nil, err
	}
	configuration := &v0.Configuration{}
	group := groupOf(&instance)
	switch err := r.cache.Get(ctx, group, configuration, client.UnsafeDisableDeepCopy); {
	case apierrors.IsNotFound(err):
		configuration = nil
	case err != nil:
		return nil, fmt.Errorf("read Configuration %s: %w", group, err)
	}
	return &pass{
		parent: ownership.InstanceParent(&instance), object: &instance, instance: &instance, configuration: configuration,
		stored: status{
			Conditions: instance.Status.Conditions, Resources: instance.Status.Resources,
			Fields: map[string]any{"displayName": instance.Status.DisplayName, "freeSlots": instance.Status.FreeSlots},
		},
	}, nil
}

// execute implements parentKind.
func (r instanceReconciler) execute(ctx context.Context, p *pass) (converge.Outcome, error) {
	instance, configuration := p.instance, p.configuration
	switch {
	case instance.DeletionTimestamp != nil:
		return r.finalize(ctx, p), nil
	case configuration == nil:
		return converge.Outcome{Resources: p.base.Resources, Problems: []*problem.Error{{
			Reason: v0.ReasonConfigurationNotFound,
			Mistake: finding.Mistake{
				Path:  "spec.configurationName",
				Cause: fmt.Sprintf("there is no Configuration %q in namespace %q", instance.Spec.ConfigurationName, instance.Namespace),
			},
		}}}, nil
	case !v0.Active(configuration):
		return converge.Outcome{Pending: true}, nil // the agents withdraw the Instance
	}
	if accountChanged(instance, configuration) {
		if err := r.client.Finalize(ctx, p.parent, account(configuration)); err != nil {
			return converge.Outcome{}, err
		}
	}
	defer r.gate.Done(configuration.UID, instance.Name)
	var device presence
	var again time.Duration
	r.update(p.parent, func(known *record) { device, again = known.absence.observe(instance, time.Now()) })
	if device == uncertain {
		return converge.Outcome{Pending: true, RequeueAfter: again}, nil
	}
	outcome, err := r.renderAndConverge(ctx, p, device)
	// A failed apply does not change the Instance's place in the rollout.
	if err == nil && !outcome.Pending && !outcome.Held && len(outcome.Problems) == 0 {
		r.gate.Report(configuration.UID, instance.Name, isTrue(readyCondition(outcome, appliedCondition(outcome))))
	}
	outcome.Requeue(again)
	return outcome, err
}

// renderAndConverge renders the templates for the Instance and converges its objects. If its
// device has departed, there are none.
func (r instanceReconciler) renderAndConverge(ctx context.Context, p *pass, device presence) (converge.Outcome, error) {
	p.compiled = r.templates.Get(p.configuration)
	if len(p.compiled.Problems) > 0 {
		// Existing objects stay until the templates are fixed.
		return converge.Outcome{Resources: p.base.Resources, Problems: p.compiled.Problems}, nil
	}
	request := r.request(ctx, p)
	if device != departed { // a rollout does not keep the objects of a device that has left
		request.MayChange = r.mayChange(p.configuration, p.instance.Name)
		request.Rendered, request.Diagnostics = p.compiled.Instance.Render(templates.InstanceValues(p.configuration, p.instance))
	}
	return r.converger.Converge(ctx, p.parent, request, p.base.Resources, p.history)
}

// mayChange returns a function that reports whether an Instance may be changed now,
// or nil if the Configuration does not limit its rollouts.
func (r instanceReconciler) mayChange(configuration *v0.Configuration, instance string) func(ready bool) bool {
	limit := maxUnavailable(configuration)
	if limit == nil {
		r.gate.Forget(configuration.UID)
		return nil
	}
	return func(ready bool) bool { return r.gate.TryAcquire(configuration.UID, instance, ready, *limit) }
}

// finalize removes what garbage collection does not remove with the Instance.
func (r instanceReconciler) finalize(ctx context.Context, p *pass) converge.Outcome {
	if p.configuration != nil {
		r.gate.RemoveInstance(p.configuration.UID, p.instance.Name) // a rollout does not wait for it
	}
	account := account(p.configuration)
	if name, found := p.instance.Annotations[v0.AnnotationServiceAccount]; found && p.configuration == nil { // it no longer exists
		account = types.NamespacedName{Namespace: p.instance.Namespace, Name: name}
	}
	if finalizers := p.instance.Finalizers; slices.Contains(finalizers, metav1.FinalizerDeleteDependents) &&
		!slices.Contains(finalizers, metav1.FinalizerOrphanDependents) { // garbage collection deletes the objects before the Instance
		r.converger.Collect(ctx, p.parent, account)
	}
	return r.teardown(ctx, p, account)
}

// accountChanged reports whether an Instance has a finalizer, but another
// ServiceAccount is recorded with it than the one that acts for it now.
func accountChanged(instance *v0.Instance, configuration *v0.Configuration) bool {
	return slices.Contains(instance.Finalizers, v0.FinalizerCleanup) &&
		instance.Annotations[v0.AnnotationServiceAccount] != account(configuration).Name
}

// judge implements parentKind.
func (r instanceReconciler) judge(_ context.Context, p *pass, outcome converge.Outcome) ([]metav1.Condition, map[string]any, error) {
	name := p.stored.Fields["displayName"]
	if p.configuration != nil {
		name = r.templates.Get(p.configuration).DisplayName(p.configuration, p.instance)
	}
	return instanceConditions(outcome), map[string]any{"displayName": name, "freeSlots": new(v0.FreeSlots(p.instance))}, nil
}

// groupOf returns the name of an Instance's Configuration.
func groupOf(instance *v0.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
}
