package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
)

// configurationReconciler keeps the objects of a group of devices, and tells how
// the group is doing.
type configurationReconciler struct {
	cache     client.Reader
	templates *templates.Cache
	objects   *objects
	gate      *rollout.Gate
	said      *memory[v0.ConfigurationStatus]
	sizes     *groupSizes
}

// Reconcile brings the objects of a Configuration's group to what it asks for.
func (r *configurationReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var configuration v0.Configuration
	if err := r.cache.Get(ctx, request.NamespacedName, &configuration); err != nil {
		if client.IgnoreNotFound(err) == nil {
			r.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cached := configuration.Status
	cached.DiscoveryFailures = nil // the agents' part; not ours to write
	status := r.said.latest(request.NamespacedName, configuration.UID, cached)
	parent := ownership.ConfigurationParent(&configuration)
	if configuration.DeletionTimestamp != nil {
		return r.leave(ctx, parent, &configuration, status)
	}
	instances, err := instancesOf(ctx, r.cache, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.sizes.set(request.NamespacedName, len(instances))
	compiled := r.templates.Get(&configuration)
	unavailable := r.use(request.NamespacedName, compiled, status, instances)

	// 2. Render; 3. plan; 4. apply.
	result := r.bring(ctx, parent, &configuration, compiled, instances, status.Resources)
	if result.announce {
		status.Resources = result.resources
		if err := r.objects.announce(ctx, parent, func() error { return r.write(ctx, parent, status) }); err != nil {
			return reconcile.Result{}, err
		}
		result = r.bring(ctx, parent, &configuration, compiled, instances, status.Resources)
	}
	if result.pending {
		return reconcile.Result{RequeueAfter: result.again}, nil // the watch that is starting wakes us
	}
	if len(result.problems) == 0 {
		result.problems = unavailable // known before the first device is there
	}

	// 5. Report, if there is news.
	later, err := r.report(ctx, parent, &configuration, status, groupStatus(&configuration, compiled, instances, result))
	if err != nil {
		return reconcile.Result{}, err
	}
	if later > 0 {
		result.soon(later)
	}
	return reconcile.Result{RequeueAfter: result.again}, problem.Retry(result.problems)
}

// leave removes what garbage collection does not remove with the Configuration.
func (r *configurationReconciler) leave(ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, status v0.ConfigurationStatus) (reconcile.Result, error) {
	if !slices.Contains(configuration.Finalizers, v0.FinalizerElsewhere) {
		return reconcile.Result{}, nil // its objects and Instances are owned by it and go with it
	}
	result := r.objects.clear(ctx, parent, account(configuration), status.Resources)
	now := status
	now.Resources = result.resources
	now.Conditions = slices.Clone(status.Conditions)
	meta.SetStatusCondition(&now.Conditions, applied(result).condition(v0.ConditionApplied, configuration.Generation))
	if _, err := r.report(ctx, parent, configuration, status, now); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, problem.Retry(result.problems)
}

func (r *configurationReconciler) forget(name types.NamespacedName) {
	r.templates.Forget(name)
	r.gate.Forget(name)
	r.sizes.forget(name)
	r.objects.endings.forget(r.said.forget(name))
	r.objects.informers.Use(name, nil)
}

// use says which resources the Configuration needs to be watched: those of its
// templates and those of what exists already. It returns what of the former the
// API server does not have.
func (r *configurationReconciler) use(name types.NamespacedName, compiled *templates.Templates, status v0.ConfigurationStatus, instances []v0.Instance) []problem.Problem {
	var resources []schema.GroupVersionResource
	var unavailable []problem.Problem
	for _, kind := range compiled.Kinds() {
		mapping, err := r.objects.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			resources = append(resources, mapping.Resource)
		} else if meta.IsNoMatchError(err) {
			unavailable = append(unavailable, problem.Of("kind of a broker resource", plan.KindUnavailableError(kind, err)))
		}
	}
	existing := map[schema.GroupVersionKind]bool{}
	note := func(entries []v0.ResourceStatus) {
		for i := range entries {
			existing[inventory.KindOf(entries[i])] = true
		}
	}
	note(status.Resources)
	for i := range instances {
		note(instances[i].Status.Resources)
	}
	for kind := range existing {
		if mapping, err := r.objects.mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			resources = append(resources, mapping.Resource)
		}
	}
	r.objects.informers.Use(name, resources)
	return unavailable
}

func (r *configurationReconciler) bring(ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, compiled *templates.Templates, instances []v0.Instance, recorded []v0.ResourceStatus) outcome {
	if len(compiled.Problems) > 0 {
		return outcome{resources: recorded, problems: compiled.Problems} // what exists stays until the templates are mended
	}
	want := wanted{account: account(configuration), templates: compiled}
	if len(instances) > 0 { // the group's objects exist exactly while there is a device
		want.rendered, want.diagnostics = compiled.Group.Render(templates.GroupValues(configuration, instances))
	}
	return r.objects.bring(ctx, parent, want, recorded)
}

// instancesOf are a Configuration's Instances that are not being deleted, sorted
// by name.
func instancesOf(ctx context.Context, cache client.Reader, configuration types.NamespacedName) ([]v0.Instance, error) {
	var list v0.InstanceList
	err := cache.List(ctx, &list, client.InNamespace(configuration.Namespace), client.MatchingFields{byConfiguration: configuration.Name},
		client.UnsafeDisableDeepCopy) // nobody here changes an Instance
	if err != nil {
		return nil, fmt.Errorf("list the Instances of Configuration %s: %w", configuration, err)
	}
	instances := slices.DeleteFunc(list.Items, func(instance v0.Instance) bool { return instance.DeletionTimestamp != nil })
	slices.SortFunc(instances, func(a, b v0.Instance) int { return strings.Compare(a.Name, b.Name) })
	return instances, nil
}

// report writes the controller's part of the Configuration's status if it says
// something new, and takes the finalizer off when nothing is left that needs it.
// News of the Instances alone is written once a second at most; later is when to
// come again with the rest.
func (r *configurationReconciler) report(ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, before, now v0.ConfigurationStatus) (later time.Duration, err error) {
	conditions := slices.Clone(before.Conditions)
	for _, condition := range now.Conditions {
		meta.SetStatusCondition(&conditions, condition)
	}
	now.Conditions = conditions
	if equality.Semantic.DeepEqual(before, now) {
		return 0, r.objects.release(ctx, parent, configuration.Finalizers, now.Resources)
	}
	sameObjects := equality.Semantic.DeepEqual(before.Resources, now.Resources) // else the inventory must not wait
	if since := r.said.since(parent.NamespacedName, parent.UID); since < groupReport && sameObjects && before.ObservedGeneration == now.ObservedGeneration {
		return groupReport - since, nil
	}
	if err := r.write(ctx, parent, now); err != nil {
		return 0, err
	}
	r.objects.tell.news(configuration, before.Conditions, now.Conditions)
	return 0, r.objects.release(ctx, parent, configuration.Finalizers, now.Resources)
}

func (r *configurationReconciler) write(ctx context.Context, parent ownership.Parent, status v0.ConfigurationStatus) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("write the status of Configuration %s: %w", parent.NamespacedName, err)
	}
	if err := r.objects.clients.Own().ApplyStatus(ctx, parent, content); err != nil {
		return err
	}
	r.said.remember(parent.NamespacedName, parent.UID, status)
	return nil
}
