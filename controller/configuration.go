package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// groupReport is the minimum interval between status writes that only report changed
// Instances.
const groupReport = time.Second

// configurationReconciler maintains the objects of a group of devices and the status
// of the Configuration.
type configurationReconciler struct {
	*memory
	cache  client.Reader
	client *apply.Client // acts as the controller
	mapper meta.RESTMapper
	events eventRecorder
}

// Reconcile brings the objects of a Configuration's group to what it specifies.
func (r *configurationReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var configuration v0.Configuration
	if err := r.cache.Get(ctx, request.NamespacedName, &configuration); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: request.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	parent := ownership.ConfigurationParent(&configuration)
	r.see(parent)
	cached := configuration.Status
	cached.DiscoveryFailures = nil // written by the agents
	status := r.configurations.latest(configuration.UID, cached)
	if configuration.DeletionTimestamp != nil {
		return r.finalize(ctx, parent, &configuration, status)
	}
	instances, err := instancesOf(ctx, r.cache, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.delays.set(request.NamespacedName, len(instances))
	compiled := r.templates.Get(&configuration)
	unavailable := r.trackResources(request.NamespacedName, compiled, status, instances)

	// 2. Render; 3. plan; 4. apply.
	result := r.converge(ctx, parent, &configuration, compiled, instances, status.Resources)
	if result.Announce {
		status.Resources = result.Resources
		if err := r.converger.Announce(ctx, parent, func() error { return r.write(ctx, parent, status) }); err != nil {
			return reconcile.Result{}, err
		}
		result = r.converge(ctx, parent, &configuration, compiled, instances, status.Resources)
	}
	if result.Pending {
		return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil // the watch requeues it when it has synced
	}
	if len(result.Problems) == 0 {
		result.Problems = unavailable // reported even before the first device is found
	}

	// 5. Report what has changed.
	later, err := r.report(ctx, parent, &configuration, status, groupStatus(&configuration, compiled, instances, result))
	if err != nil {
		return reconcile.Result{}, err
	}
	if later > 0 {
		result.Requeue(later)
	}
	return reconcile.Result{RequeueAfter: result.RequeueAfter}, problem.Retry(result.Problems)
}

// finalize removes what garbage collection does not remove with the Configuration.
func (r *configurationReconciler) finalize(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, status v0.ConfigurationStatus,
) (reconcile.Result, error) {
	if !slices.Contains(configuration.Finalizers, v0.FinalizerElsewhere) {
		return reconcile.Result{}, nil // garbage collection removes its objects and Instances
	}
	result := r.converger.Finalize(ctx, parent, account(configuration), status.Resources)
	now := status
	now.Resources = result.Resources
	now.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&now.Conditions, applied(result).condition(v0.ConditionApplied, configuration.Generation))
	later, err := r.report(ctx, parent, configuration, status, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: later}, problem.Retry(result.Problems)
}

// trackResources sets the resources that are watched for the Configuration: those
// of its templates and of its existing objects. It returns a problem for each kind
// of a template that the API server does not serve.
func (r *configurationReconciler) trackResources(
	name types.NamespacedName, compiled *templates.Templates, status v0.ConfigurationStatus, instances []v0.Instance,
) []problem.Problem {
	var resources []schema.GroupVersionResource
	var unavailable []problem.Problem
	for _, kind := range compiled.Kinds() {
		mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			resources = append(resources, mapping.Resource)
		} else if meta.IsNoMatchError(err) {
			unavailable = append(unavailable, problem.Of("kind of a broker resource", plan.KindUnavailableError(kind, err)))
		}
	}
	existing := map[schema.GroupVersionKind]bool{}
	addRecorded := func(entries []v0.ResourceStatus) {
		for i := range entries {
			existing[inventory.KindOf(entries[i])] = true
		}
	}
	addRecorded(status.Resources)
	for i := range instances {
		addRecorded(instances[i].Status.Resources)
	}
	for kind := range existing {
		if mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			resources = append(resources, mapping.Resource)
		}
	}
	r.informers.Use(name, resources)
	return unavailable
}

// converge renders the templates for the group and converges its objects.
func (r *configurationReconciler) converge(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration,
	compiled *templates.Templates, instances []v0.Instance, recorded []v0.ResourceStatus,
) converge.Outcome {
	if len(compiled.Problems) > 0 {
		return converge.Outcome{Resources: recorded, Problems: compiled.Problems} // existing objects stay until the templates are fixed
	}
	want := converge.Wanted{Account: account(configuration), Templates: compiled}
	if len(instances) > 0 { // the group's objects exist as long as there is a device
		want.Rendered, want.Diagnostics = compiled.Group.Render(templates.GroupValues(configuration, instances))
	}
	return r.converger.Converge(ctx, parent, want, recorded)
}

// account returns the ServiceAccount that acts for a Configuration and its
// Instances. Objects that outlive the Configuration are removed by the controller
// itself.
func account(configuration *v0.Configuration) types.NamespacedName {
	if configuration == nil || configuration.Spec.ServiceAccountName == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Spec.ServiceAccountName}
}

// instancesOf returns a Configuration's Instances that are not being deleted,
// sorted by name. The caller must not change them.
func instancesOf(ctx context.Context, cache client.Reader, configuration types.NamespacedName) ([]v0.Instance, error) {
	var list v0.InstanceList
	err := cache.List(ctx, &list, client.InNamespace(configuration.Namespace),
		client.MatchingFields{byConfiguration: configuration.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the Instances of Configuration %s: %w", configuration, err)
	}
	instances := slices.DeleteFunc(list.Items, func(instance v0.Instance) bool { return instance.DeletionTimestamp != nil })
	slices.SortFunc(instances, func(a, b v0.Instance) int { return strings.Compare(a.Name, b.Name) })
	return instances, nil
}

// report writes the controller's part of the Configuration's status if it has
// changed, and removes the finalizer when no object needs it any more. Changes of
// the Instances alone are written at most once in groupReport; later is then the
// requeue delay for the rest.
func (r *configurationReconciler) report(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, before, now v0.ConfigurationStatus,
) (later time.Duration, err error) {
	conditions := slices.Clone(before.Conditions)
	for _, condition := range now.Conditions {
		meta.SetStatusCondition(&conditions, condition)
	}
	now.Conditions = conditions
	if equality.Semantic.DeepEqual(before, now) {
		return 0, r.converger.Release(ctx, parent, configuration.Finalizers, now.Resources)
	}
	sameObjects := equality.Semantic.DeepEqual(before.Resources, now.Resources) // else the inventory must not wait
	if since := r.configurations.since(parent.UID); since < groupReport && sameObjects && before.ObservedGeneration == now.ObservedGeneration {
		return groupReport - since, nil
	}
	if err := r.write(ctx, parent, now); err != nil {
		return 0, err
	}
	r.events.conditionsChanged(configuration, before.Conditions, now.Conditions)
	return 0, r.converger.Release(ctx, parent, configuration.Finalizers, now.Resources)
}

func (r *configurationReconciler) write(ctx context.Context, parent ownership.Parent, status v0.ConfigurationStatus) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", parent, err)
	}
	if err := r.client.ApplyStatus(ctx, parent, content); err != nil {
		return err
	}
	r.configurations.remember(parent.UID, status)
	return nil
}
