package nodes

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/deadline"
	"akri.sh/akri/internal/jsonpatch"
)

// maxListedPods limits how many Pods are in memory at a time. Users may give each a megabyte.
const maxListedPods = 10

// Reasons of Events.
const (
	reasonNodeLost   = "NodeLost"
	reasonDeviceLost = "DeviceLost"
)

// reconciler reconciles nodes. It has one worker, so its state needs no lock.
type reconciler struct {
	cache   client.Reader
	api     client.Reader // not cached
	client  client.Client
	options Options
	now     func() time.Time
	outages outages
	// closed is true for nodes that take no Pods, and false for one that does again until its Instances have been looked at.
	closed map[string]bool
	stale  map[string]staleNode
	events events.EventRecorder
}

// Reconcile removes what a lost node has left, and stale resources from a node, and puts
// nodes that take no Pods last.
// The node may no longer exist.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, err := readNode(ctx, r.cache, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	nextLost, errLost := r.reconcileLost(ctx, request.Name, node)
	nextStale, errStale := r.reconcileStale(ctx, request.Name, node)
	if err := errors.Join(errLost, errStale, r.reorder(ctx, request.Name, node)); err != nil {
		return reconcile.Result{}, err
	}
	next := deadline.Earliest(nextLost, nextStale)
	if next.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(next.Sub(r.now()), time.Millisecond)}, nil
}

// reconcileLost removes a lost node from its Instances, and the failures of a deleted one
// from Configurations. It returns when to check again; zero if not before the next event.
func (r *reconciler) reconcileLost(ctx context.Context, name string, node *corev1.Node) (next time.Time, err error) {
	if r.options.keepsInstances() {
		return time.Time{}, nil
	}
	instances, errInstances := r.instancesOn(ctx, name)
	configurations, errConfigurations := r.configurationsOn(ctx, name, node)
	if err := errors.Join(errInstances, errConfigurations); err != nil ||
		len(instances)+len(configurations) == 0 && r.outages[name] == nil {
		return time.Time{}, err
	}
	now := r.now()
	state, uid := stateOf(node)
	lost := r.outages.observe(name, state, uid, now)
	if lost == nil {
		return time.Time{}, nil
	}
	dueInstances, nextInstance := dueAt(now, instances, func(instance *v0.Instance) time.Time {
		return lost.due(client.ObjectKeyFromObject(instance), r.options)
	})
	dueConfigurations, nextConfiguration := dueAt(now, configurations, func(configuration *v0.Configuration) time.Time {
		return lost.clearDue(client.ObjectKeyFromObject(configuration), r.options)
	})
	next = deadline.Earliest(nextInstance, nextConfiguration)
	if len(dueInstances)+len(dueConfigurations) == 0 {
		return next, nil
	}

	// The cache may be stale, above all after the API server was unavailable.
	current, err := readNode(ctx, r.api, name)
	if err != nil {
		return time.Time{}, err
	}
	if currentState, currentUID := stateOf(current); currentState != state || currentUID != uid {
		return time.Time{}, fmt.Errorf("the watch of nodes is late: node %s is %s, or was created again: it is read until both agree",
			name, currentState) // with the back-off of errors
	}
	used := use{}
	if state != Gone {
		if err := r.addPods(ctx, name, used); err != nil {
			return time.Time{}, err
		}
	}
	again, errInstances := r.removeFrom(ctx, dueInstances, name, lost, used)
	return deadline.Earliest(next, again), errors.Join(errInstances, r.removeFailures(ctx, dueConfigurations, name, lost))
}

// dueAt returns the objects that are due at a time, and when the next of the others is;
// zero if none is.
func dueAt[T any](now time.Time, objects []T, at func(*T) time.Time) (due []*T, next time.Time) {
	for i := range objects {
		if later := at(&objects[i]); later.After(now) {
			next = deadline.Earliest(next, later)
		} else {
			due = append(due, &objects[i])
		}
	}
	return due, next
}

// removeFrom removes a node from the Instances that it does not use. It returns
// when to check again those that it uses.
func (r *reconciler) removeFrom(
	ctx context.Context, instances []*v0.Instance, node string, lost *outage, used use,
) (next time.Time, err error) {
	now, state := r.now(), lost.state
	var errs []error
	for _, instance := range instances {
		key := client.ObjectKeyFromObject(instance)
		action := decide(instance, node, used.includes(instance))
		if action == Keep {
			lost.lastUsed[key] = now
			next = deadline.Earliest(next, lost.due(key, r.options))
			continue
		}
		if err := r.execute(ctx, action, instance, node); err != nil {
			errs = append(errs, fmt.Errorf("remove node %s, which is %s, from Instance %s: %w", node, state, key, err))
			continue
		}
		lost.removals.record(key, now)
		log.FromContext(ctx).Info("Removed a lost node from an Instance", "state", state, "instance", key, "action", action)
		note := "node %s is %s: removed it from this Instance and freed its slots"
		if action == Delete {
			note = "node %s, the only one that can reach the device, is %s"
		}
		r.events.Eventf(instance, nil, corev1.EventTypeWarning, reasonNodeLost, string(action), note, node, state)
	}
	return next, errors.Join(errs...)
}

// execute carries out an action.
func (r *reconciler) execute(ctx context.Context, action Action, instance *v0.Instance, node string) error {
	if action == Delete {
		return deleteInstance(ctx, r.client, instance)
	}
	return r.patch(ctx, instance, nodeRemoval(instance, node))
}

func (r *reconciler) patch(ctx context.Context, instance *v0.Instance, patch jsonpatch.Patch) error {
	target := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}}
	raw := client.RawPatch(types.JSONPatchType, patch.Encode())
	return explainConflict(r.client.Patch(ctx, target, raw, client.FieldOwner(v0.FieldManagerController)))
}

// instancesOn returns the Instances that a node sees or holds a slot of.
func (r *reconciler) instancesOn(ctx context.Context, node string) ([]v0.Instance, error) {
	var list v0.InstanceList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Instances of node %s: %w", node, err)
	}
	return list.Items, nil
}

// removeFailures removes the failures of a deleted node from Configurations.
func (r *reconciler) removeFailures(ctx context.Context, configurations []*v0.Configuration, node string, lost *outage) error {
	var errs []error
	for _, configuration := range configurations {
		key := client.ObjectKeyFromObject(configuration)
		target := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		patch := client.RawPatch(types.JSONPatchType, failureRemoval(configuration, node).Encode())
		err := r.client.Status().Patch(ctx, target, patch, client.FieldOwner(v0.FieldManagerController))
		if err = explainConflict(err); err != nil {
			errs = append(errs, fmt.Errorf("remove the failures of node %s, which is %s, from Configuration %s: %w", node, lost.state, key, err))
			continue
		}
		lost.cleared.record(key, r.now())
		log.FromContext(ctx).Info("Removed the failures of a deleted node from a Configuration", "configuration", key)
	}
	return errors.Join(errs...)
}

// configurationsOn returns the Configurations that list failures of a node that does not
// exist. Those of other nodes are not removed: their agents know better.
func (r *reconciler) configurationsOn(ctx context.Context, name string, node *corev1.Node) ([]v0.Configuration, error) {
	if node != nil {
		return nil, nil
	}
	var list v0.ConfigurationList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byFailingNode: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Configurations with failures of node %s: %w", name, err)
	}
	return list.Items, nil
}

// addPods adds the requests of a node's Pods to used.
func (r *reconciler) addPods(ctx context.Context, node string, used use) error {
	for next := ""; ; {
		var pods corev1.PodList
		if err := r.api.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node},
			client.Limit(maxListedPods), client.Continue(next)); err != nil {
			return fmt.Errorf("list the Pods of node %s: %w", node, err)
		}
		used.add(pods.Items)
		if next = pods.Continue; next == "" {
			return nil
		}
	}
}

// reconcileStale removes stale resources from a node's status. It returns when to
// check again; zero if not before the next event.
func (r *reconciler) reconcileStale(ctx context.Context, name string, node *corev1.Node) (time.Time, error) {
	if node == nil {
		delete(r.stale, name)
		return time.Time{}, nil
	}
	var stale []corev1.ResourceName
	if len(emptyResources(node)) > 0 {
		exists, err := r.names(ctx)
		if err != nil {
			return time.Time{}, err
		}
		stale = staleOf(node, exists)
	}
	now, its := r.now(), r.stale[name]
	if len(stale) == 0 {
		if r.stale[name] = (staleNode{removed: its.removed}); its.removed.IsZero() {
			delete(r.stale, name)
		}
		return time.Time{}, nil
	}
	if its.since.IsZero() {
		its.since = now
		r.stale[name] = its
	}
	if due := its.due(r.options.StaleDelay); due.After(now) {
		return due, nil
	}
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := client.RawPatch(types.JSONPatchType, resourceRemoval(node, stale).Encode())
	if err := explainConflict(r.client.Status().Patch(ctx, target, patch, client.FieldOwner(v0.FieldManagerController))); err != nil {
		return time.Time{}, fmt.Errorf("remove stale resources from the status of node %s: %w", name, err)
	}
	r.stale[name] = staleNode{removed: now}
	log.FromContext(ctx).Info("Removed stale resources from a node", "resources", stale)
	return time.Time{}, nil
}

// names returns the names of all Instances and Configurations.
func (r *reconciler) names(ctx context.Context) (map[string]bool, error) {
	var instances v0.InstanceList
	var configurations v0.ConfigurationList
	if err := errors.Join(
		r.cache.List(ctx, &instances, client.UnsafeDisableDeepCopy),
		r.cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy),
	); err != nil {
		return nil, fmt.Errorf("list Instances and Configurations: %w", err)
	}
	names := map[string]bool{}
	for i := range instances.Items {
		names[instances.Items[i].Name] = true
	}
	for i := range configurations.Items {
		names[configurations.Items[i].Name] = true
	}
	return names, nil
}

// readNode returns a node, or nil if it does not exist. The name may be anything that
// somebody wrote into an Instance or a status.
func readNode(ctx context.Context, reader client.Reader, name string) (*corev1.Node, error) {
	if name == "" || len(content.IsPathSegmentName(name)) > 0 {
		return nil, nil
	}
	var node corev1.Node
	err := reader.Get(ctx, types.NamespacedName{Name: name}, &node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return &node, nil
}

// deleteInstance deletes an Instance if it has not changed since it was read.
func deleteInstance(ctx context.Context, api client.Client, instance *v0.Instance) error {
	target := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}}
	return explainConflict(api.Delete(ctx, target, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion}))
}

// explainConflict says that a request with preconditions was refused for one of them. It
// ignores that the object no longer exists.
func explainConflict(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return fmt.Errorf("it has changed since it was read; retrying: %w", err)
	}
	return err
}
