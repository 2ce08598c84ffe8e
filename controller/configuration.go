package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// configurationReconciler maintains the objects of a group of devices and the status
// of the Configuration.
type configurationReconciler struct {
	*parentMemory
	cache  client.Reader
	client *apply.Client // acts as the controller
	mapper *kinds.Mapper
	events eventRecorder
}

// Reconcile brings the objects of a Configuration's group to what it specifies.
func (r *configurationReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	// 1. Read, from caches only.
	var configuration v0.Configuration
	if err := r.cache.Get(ctx, request.NamespacedName, &configuration); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(ctx, ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: request.NamespacedName})
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	parent := ownership.ConfigurationParent(&configuration)
	r.observe(ctx, parent, &configuration)
	cached := configuration.Status
	cached.DiscoveryFailures = nil // written by the agents
	stored, status, ok := r.configurations.latest(&configuration, cached)
	if !ok {
		return reconcile.Result{RequeueAfter: readAgain}, nil
	}
	if !v0.Active(&configuration) {
		return r.finalize(ctx, parent, &configuration, stored, status)
	}
	instances, err := instancesOf(ctx, r.cache, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	instances, certain, again := r.departures.remaining(instances, time.Now())
	if !certain {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	r.countMembers(&configuration, instances)
	compiled := r.templates.Get(&configuration)
	unavailable := r.trackResources(request.NamespacedName, compiled, status)

	// 2. Render; 3. plan; 4. apply.
	record := func(resources []v0.ResourceStatus) error {
		status.Resources = resources
		if err := r.write(ctx, parent, stored, status); err != nil {
			return err
		}
		stored = status
		return nil
	}
	result, err := r.renderAndConverge(ctx, parent, &configuration, compiled, instances, status.Resources, record)
	if err != nil {
		return reconcile.Result{}, ignoreGone(err)
	}
	if result.Pending {
		return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil // the watch requeues it when it has synced
	}
	if len(result.Problems) == 0 {
		result.Problems = unavailable // reported even before the first device is found
	}

	// 5. Report what has changed.
	shown, complete := r.shown(parent, &result)
	if !complete {
		status.Resources = result.Resources
		r.configurations.hold(parent.UID, status, progress, time.Now())
		return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil
	}
	nodes, err := r.countNodes(ctx, &configuration)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := groupStatus(&configuration, compiled, instances, r.late(&configuration, stored, instances), nodes, shown)
	if err := r.report(ctx, parent, &configuration, stored, now, &result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: sooner(result.RequeueAfter, again)}, nil
}

// finalize removes what garbage collection does not remove with the Configuration.
func (r *configurationReconciler) finalize(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration, stored, status v0.ConfigurationStatus,
) (reconcile.Result, error) {
	if !slices.Contains(configuration.Finalizers, v0.FinalizerCleanup) {
		return reconcile.Result{}, nil // garbage collection removes its objects and Instances
	}
	result := r.converger.Finalize(ctx, parent, account(configuration), status.Resources, r.orphans(parent))
	shown, complete := r.shown(parent, &result)
	now := stored
	now.Resources = result.Resources
	if complete {
		now.Conditions = []metav1.Condition{applied(shown).condition(v0.ConditionApplied, configuration.Generation)}
	}
	if err := r.report(ctx, parent, configuration, stored, now, &result); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: result.RequeueAfter}, nil
}

// trackResources sets the resources that are watched for the Configuration: those
// of its templates and of its existing objects. It returns a problem for each kind
// of a template that the API server does not serve, or that cannot be watched.
func (r *configurationReconciler) trackResources(
	name types.NamespacedName, compiled *templates.Templates, status v0.ConfigurationStatus,
) []*problem.Error {
	const place = "kind of a broker resource"
	var resources []schema.GroupVersionResource
	var unavailable []*problem.Error
	for _, kind := range compiled.Kinds() {
		mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			unavailable = append(unavailable, problem.At(place, plan.KindUnavailableError(kind, err)))
		}
		if err != nil {
			continue
		}
		resources = append(resources, mapping.Resource)
		if state := r.informers.State(mapping.Resource); state.Err != nil {
			unavailable = append(unavailable, problem.At(place, apply.WatchError(kind, mapping.Resource, state.Err)))
		}
	}
	for _, kind := range slices.Concat(inventory.Kinds(status.Resources), r.kinds.of(name)) {
		if mapping, err := plan.Served(r.mapper, kind); err == nil {
			resources = append(resources, mapping.Resource)
		}
	}
	r.informers.SetResources(name, resources)
	return unavailable
}

// renderAndConverge renders the templates for the group and converges its objects.
func (r *configurationReconciler) renderAndConverge(
	ctx context.Context, parent ownership.Parent, configuration *v0.Configuration,
	compiled *templates.Templates, instances []v0.Instance, recorded []v0.ResourceStatus, record func([]v0.ResourceStatus) error,
) (converge.Outcome, error) {
	if len(compiled.Problems) > 0 {
		// Existing objects stay until the templates are fixed.
		return converge.Outcome{Resources: recorded, Problems: compiled.Problems}, nil
	}
	request := converge.Request{
		Account: account(configuration), Templates: compiled, Kinds: r.kinds.of(parent.NamespacedName), Record: record,
	}
	if len(instances) > 0 { // the group's objects exist as long as there is a device
		request.Rendered, request.Diagnostics = compiled.Group.Render(templates.GroupValues(configuration, instances))
	}
	return r.converger.Converge(ctx, parent, request, recorded)
}

// countNodes returns the number of nodes if the status of a Configuration needs it, or 0.
func (r *configurationReconciler) countNodes(ctx context.Context, configuration *v0.Configuration) (int, error) {
	if !slices.ContainsFunc(configuration.Status.DiscoveryFailures, v0.DiscoveryFailure.HandlerMissing) {
		return 0, nil
	}
	var list corev1.NodeList
	if err := r.cache.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("count the nodes: %w", err)
	}
	return len(list.Items), nil
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
