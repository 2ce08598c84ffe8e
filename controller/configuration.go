package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	*parentReconciler
	mapper *kinds.Mapper
}

// Reconcile brings the objects of a Configuration's group to what it specifies.
func (r configurationReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	return r.reconcile(ctx, r, ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: request.NamespacedName})
}

// read implements parentKind.
func (r configurationReconciler) read(ctx context.Context, name types.NamespacedName) (*pass, error) {
	var configuration v0.Configuration
	if err := r.cache.Get(ctx, name, &configuration); err != nil {
		return nil, err
	}
	stored := &configuration.Status
	return &pass{
		parent: ownership.ConfigurationParent(&configuration), object: &configuration, configuration: &configuration,
		stored: status{Conditions: stored.Conditions, Resources: stored.Resources, Fields: map[string]any{
			"observedGeneration": stored.ObservedGeneration, "instances": stored.Instances,
			"readyInstances": stored.ReadyInstances, "failingInstances": stored.FailingInstances,
		}},
	}, nil
}

// execute implements parentKind.
func (r configurationReconciler) execute(ctx context.Context, p *pass) (converge.Outcome, error) {
	configuration := p.configuration
	if !v0.Active(configuration) {
		return r.teardown(ctx, p, account(configuration)), nil
	}
	over, left := expiry(configuration, time.Now())
	if over {
		err := r.client.Delete(ctx, p.parent.Resource(), p.parent.NamespacedName, p.parent.UID, configuration.ResourceVersion)
		return converge.Outcome{Pending: true}, err
	}
	instances, err := instancesOf(ctx, r.cache, p.parent.NamespacedName)
	if err != nil {
		return converge.Outcome{}, err
	}
	group := r.survey(p, instances, time.Now())
	if p.group = &group; group.uncertain {
		return converge.Outcome{Pending: true, RequeueAfter: group.again}, nil
	}
	r.update(p.parent, func(known *record) { known.members, known.kinds = len(group.instances), group.kinds })
	r.limitRollouts(configuration, group.instances)
	p.compiled = r.templates.Get(configuration)
	unavailable := r.trackResources(p)

	outcome := converge.Outcome{Resources: p.base.Resources, Problems: p.compiled.Problems} // existing objects stay until these are fixed
	if len(p.compiled.Problems) == 0 {
		request := r.request(ctx, p)
		if len(group.instances) > 0 { // the group's objects exist as long as there is a device
			request.Rendered, request.Diagnostics = p.compiled.Group.Render(templates.GroupValues(configuration, group.instances))
		}
		outcome, err = r.converger.Converge(ctx, p.parent, request, p.base.Resources, p.history)
	}
	if len(outcome.Problems) == 0 {
		outcome.Problems = unavailable // reported even before the first device is found
	}
	outcome.Requeue(group.again)
	outcome.Requeue(left)
	return outcome, err
}

// expiry reports whether the time of a Configuration of kubectl akri discover is over, or how
// much is left; 0 is for ever. The command deletes its Configuration itself, unless it has been
// killed or has lost its connection. A label that is not a time is not of discover.
func expiry(configuration *v0.Configuration, now time.Time) (over bool, left time.Duration) {
	end, err := strconv.ParseInt(configuration.Labels[v0.LabelDiscoverUntil], 10, 64)
	if err != nil {
		return false, 0
	}
	left = time.Unix(end, 0).Sub(now)
	return left <= 0, left
}

// maxUnavailable returns how many Instances a change may make unavailable; nil is any
// number.
func maxUnavailable(configuration *v0.Configuration) *intstr.IntOrString {
	if configuration.Spec.Rollout == nil {
		return nil
	}
	return configuration.Spec.Rollout.MaxUnavailable
}

// limitRollouts tells the rollout gate which Instances a Configuration has.
func (r configurationReconciler) limitRollouts(configuration *v0.Configuration, instances []v0.Instance) {
	limit := maxUnavailable(configuration)
	if limit == nil {
		r.gate.Forget(configuration.UID)
		return
	}
	names := make([]string, len(instances))
	for i := range instances {
		names[i] = instances[i].Name
	}
	r.gate.SetInstances(configuration.UID, configuration.Namespace, names, *limit)
}

// trackResources sets the resources that are watched for the Configuration: those
// of its templates and of existing objects. It returns a problem for each kind
// of a template that the API server does not serve, or that cannot be watched.
func (r configurationReconciler) trackResources(p *pass) []*problem.Error {
	const place = "kind of a broker resource"
	var resources []schema.GroupVersionResource
	var unavailable []*problem.Error
	for _, kind := range p.compiled.Kinds() {
		mapping, err := plan.Mapping(r.mapper, kind)
		if err != nil {
			unavailable = append(unavailable, problem.At(place, err))
			continue
		}
		resources = append(resources, mapping.Resource)
		if state := r.informers.State(mapping.Resource); state.Err != nil {
			unavailable = append(unavailable, problem.At(place, apply.WatchError(kind, mapping.Resource, state.Err)))
		}
	}
	for _, kind := range slices.Concat(inventory.Kinds(p.base.Resources), p.group.kinds) {
		if mapping, err := plan.Served(r.mapper, kind); err == nil {
			resources = append(resources, mapping.Resource)
		}
	}
	r.informers.SetResources(p.parent.NamespacedName, resources)
	return unavailable
}

// judge implements parentKind.
func (r configurationReconciler) judge(
	ctx context.Context, p *pass, outcome converge.Outcome,
) ([]metav1.Condition, map[string]any, error) {
	configuration, group := p.configuration, p.group
	if group == nil { // it is being deleted
		return []metav1.Condition{appliedCondition(outcome)}, p.stored.Fields, nil
	}
	if slices.ContainsFunc(configuration.Status.DiscoveryFailures, v0.DiscoveryFailure.HandlerMissing) {
		var nodes corev1.NodeList
		if err := r.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, nil, fmt.Errorf("count the nodes: %w", err)
		}
		group.nodes = len(nodes.Items)
	}
	accepted := trueCondition(v0.ConditionAccepted, v0.ReasonAccepted, "the templates are valid")
	if problems := p.compiled.Problems; len(problems) > 0 {
		accepted = falseCondition(v0.ConditionAccepted, problems[0].Reason, listed(problems))
	}
	return group.conditions(configuration, accepted, outcome), map[string]any{
		"observedGeneration": configuration.Generation, "instances": int32(len(group.instances)),
		"readyInstances": int32(group.ready), "failingInstances": int32(group.failing.count),
	}, nil
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
