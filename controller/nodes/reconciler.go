package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"akri.sh/akri/controller/advice"
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

const owner = client.FieldOwner(v0.FieldManagerController)

// reconciler reconciles nodes. It has one worker, so its state needs no lock.
type reconciler struct {
	cache   client.Reader
	api     client.Reader // not cached
	client  client.Client
	options Options
	outages outages
	events  events.EventRecorder
}

// Reconcile removes what a lost node has left, and puts nodes that take no Pods last.
// The node may no longer exist.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, err := readNode(ctx, r.cache, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	var instances v0.InstanceList
	if err := r.cache.List(ctx, &instances, client.MatchingFields{byNode: request.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the Instances of node %s: %w", request.Name, err)
	}
	next, err := r.removeLost(ctx, request.Name, node, instances.Items)
	if err := errors.Join(err, r.reorder(ctx, instances.Items)); err != nil || next.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(time.Until(next), time.Millisecond)}, nil
}

// removeLost removes a lost node from its Instances, and the failures of a deleted one
// from Configurations. Those of other nodes are not removed: their agents know better.
// It returns when to check again; zero if not before the next event.
func (r *reconciler) removeLost(
	ctx context.Context, name string, node *corev1.Node, instances []v0.Instance,
) (next time.Time, err error) {
	var objects []client.Object
	for i := range instances {
		if instances[i].DeletionTimestamp == nil {
			objects = append(objects, &instances[i])
		}
	}
	if node == nil {
		var configurations v0.ConfigurationList
		if err := r.cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
			return time.Time{}, fmt.Errorf("list the Configurations with failures of node %s: %w", name, err)
		}
		for i := range configurations.Items {
			if slices.Contains(failingNodes(&configurations.Items[i]), name) {
				objects = append(objects, &configurations.Items[i])
			}
		}
	}
	if len(objects) == 0 && r.outages[name] == nil {
		return time.Time{}, nil
	}
	now := time.Now()
	lost := r.outages.observe(name, statusOf(node), now)
	if lost == nil {
		return time.Time{}, nil
	}
	due := slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return lost.due(o.GetUID(), r.options).After(now) })
	if len(due) > 0 {
		err = r.removeFrom(ctx, due, name, lost)
	}
	for _, object := range objects {
		next = deadline.Earliest(next, lost.due(object.GetUID(), r.options))
	}
	return next, err
}

// removeFrom removes a node from the Instances that its Pods do not use, and its failures from
// Configurations.
func (r *reconciler) removeFrom(ctx context.Context, objects []client.Object, name string, lost *outage) error {
	used, err := r.usedOn(ctx, name, lost.status)
	if err != nil {
		return err
	}
	var errs []error
	for _, object := range objects {
		if instance, ok := object.(*v0.Instance); ok && uses(used, instance) {
			lost.record(object.GetUID(), false, time.Now(), r.options)
			continue
		}
		if err := r.remove(ctx, object, name, lost.state); err != nil {
			errs = append(errs, fmt.Errorf("remove node %s, which is %s, from %T %s: %w",
				name, lost.state, object, client.ObjectKeyFromObject(object), err))
			continue
		}
		lost.record(object.GetUID(), true, time.Now(), r.options)
	}
	return errors.Join(errs...)
}

// remove removes a node from an Instance, or its failures from a Configuration.
func (r *reconciler) remove(ctx context.Context, object client.Object, node string, state State) (err error) {
	var action, note string
	switch object := object.DeepCopyObject().(type) { // the answer overwrites it, but not what the cache has
	case *v0.Configuration:
		err = r.client.Status().Patch(ctx, object, rawPatch(failureRemoval(object, node)), owner)
	case *v0.Instance:
		action, note = "RemoveNode", "node %s is %s: removed it from this Instance and freed its slots"
		if object.Spec.Shared || len(Of(object)) > 1 {
			err = r.client.Patch(ctx, object, rawPatch(nodeRemoval(object, node)), owner)
			break
		}
		action, note = "Delete", "node %s, the only one that can reach the device, is %s"
		err = deleteInstance(ctx, r.client, object)
	}
	if err := explainConflict(err); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Removed a lost node from an object", "state", state, "from", client.ObjectKeyFromObject(object))
	if note != "" {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonNodeLost, action, note, node, state)
	}
	return nil
}

// usedOn returns how many devices the Pods of a lost node request, by resource, unless they
// have terminated. A Pod that is being deleted has not: on an unreachable node, it may run
// forever. The node is read again first, because the cache may be stale, above all after the
// API server was unavailable.
func (r *reconciler) usedOn(ctx context.Context, name string, cached status) (map[string]int64, error) {
	node, err := readNode(ctx, r.api, name)
	if err != nil {
		return nil, err
	}
	if current := statusOf(node); current != cached {
		return nil, fmt.Errorf("the watch of nodes lags: node %s is %s, or was created again; retrying until the watch shows it",
			name, current.state) // with the back-off of errors
	}
	used := map[string]int64{}
	if cached.state == Gone {
		return used, nil
	}
	for next := ""; ; {
		var pods corev1.PodList
		if err := r.api.List(ctx, &pods, client.MatchingFields{"spec.nodeName": name},
			client.Limit(maxListedPods), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list the Pods of node %s: %w", name, err)
		}
		addUse(used, pods.Items)
		if next = pods.Continue; next == "" {
			return used, nil
		}
	}
}

// addUse adds the devices that Pods request which have not terminated.
func addUse(used map[string]int64, pods []corev1.Pod) {
	for i := range pods {
		if phase := pods[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		for resource, amount := range advice.Requested(&pods[i].Spec) {
			used[resource] += amount
		}
	}
}

// uses reports whether Pods that request some devices may use an Instance. One that requests the
// Configuration's resource may use any of its Instances.
func uses(requested map[string]int64, instance *v0.Instance) bool {
	return requested[v0.ResourceName(instance.Name)]+requested[v0.ResourceName(instance.Spec.ConfigurationName)] > 0
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
	return explainConflict(api.Delete(ctx, instance, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion}))
}

func rawPatch(patch jsonpatch.Patch) client.Patch {
	return client.RawPatch(types.JSONPatchType, patch.Encode())
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
