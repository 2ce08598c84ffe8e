package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/watch"
	"akri.sh/akri/templating"
)

// instanceReconciler keeps the objects of one device.
type instanceReconciler struct {
	cache     client.Reader
	templates *templates.Cache
	objects   *objects
	client    *apply.Client
	said      *memory[v0.InstanceStatus]
}

// Reconcile brings the objects of an Instance to what its Configuration asks
// for.
func (r *instanceReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var instance v0.Instance
	if err := r.cache.Get(ctx, request.NamespacedName, &instance); err != nil {
		r.objects.endings.forget(r.said.forget(request.NamespacedName))
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if instance.DeletionTimestamp != nil {
		return reconcile.Result{}, nil // its objects are owned by it and go with it
	}
	status := r.said.latest(request.NamespacedName, instance.UID, instance.Status)
	configuration, err := r.configuration(ctx, &instance)
	if err != nil {
		return reconcile.Result{}, err
	}

	// 2. Render; 3. plan; 4. apply.
	result := r.bring(ctx, &instance, configuration, status.Resources)
	if result.pending {
		return reconcile.Result{RequeueAfter: result.again}, nil // the watch that is starting wakes us
	}

	// 5. Report, if there is news.
	if err := r.report(ctx, &instance, status, result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: result.again}, retry(result.problems)
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

func (r *instanceReconciler) bring(ctx context.Context, instance *v0.Instance, configuration *v0.Configuration, recorded []v0.ResourceStatus) outcome {
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
	rendered, diagnostics := compiled.Instance.Render(templating.Values{
		Configuration: configuration.Name,
		Namespace:     configuration.Namespace,
		Capacity:      int64(configuration.Spec.Capacity),
		Instance:      instanceValues(instance),
	})
	self := parent{
		Parent: watch.Parent{Instance: true, NamespacedName: types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}},
		uid:    instance.UID,
		kind:   v0.InstanceKind,
	}
	return r.objects.bring(ctx, self, compiled, rendered, diagnostics, recorded)
}

func instanceValues(instance *v0.Instance) templating.Instance {
	return templating.Instance{
		Name:       instance.Name,
		Properties: instance.Spec.BrokerProperties,
		Nodes:      instance.Spec.Nodes,
		Shared:     instance.Spec.Shared,
	}
}

// report writes the Instance's status if it says something new.
func (r *instanceReconciler) report(ctx context.Context, instance *v0.Instance, before v0.InstanceStatus, result outcome) error {
	now := v0.InstanceStatus{Resources: result.resources}
	now.Conditions = append(now.Conditions, before.Conditions...)
	appliedVerdict := applied(result)
	meta.SetStatusCondition(&now.Conditions, appliedVerdict.condition(v0.ConditionApplied, 0))
	meta.SetStatusCondition(&now.Conditions, readyObjects(result, appliedVerdict).condition(v0.ConditionReady, 0))
	if equality.Semantic.DeepEqual(before, now) {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&now)
	if err != nil {
		return fmt.Errorf("write the status of Instance %s/%s: %w", instance.Namespace, instance.Name, err)
	}
	name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name}
	if err := r.client.Status(ctx, v0.InstanceResource, name, instance.UID, v0.GroupVersion.String(), v0.InstanceKind.Kind, content); err != nil {
		return err
	}
	r.said.remember(name, instance.UID, now)
	return nil
}
