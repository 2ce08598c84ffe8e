package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
)

// soon is when to look again at a node of which the cache is behind.
const soon = time.Second

// podsAtOnce bounds how many Pods are in memory.
const podsAtOnce = 100

// reconciler looks at one node at a time. It has one worker, so its memory needs
// no lock.
type reconciler struct {
	cache   client.Reader
	api     client.Reader // not cached
	client  client.Client
	options Options
	now     func() time.Time
	outages outages
	graves  map[string]graves
	events  events.EventRecorder
}

// Reconcile does what is due about a node, which may be gone.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, err := read(ctx, r.cache, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	again, lost := r.takeOffIfLost(ctx, request.Name, node)
	next, buried := r.buryDead(ctx, request.Name, node)
	if err := errors.Join(lost, buried); err != nil {
		return reconcile.Result{}, err
	}
	if again = sooner(again, next); again.IsZero() {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: max(again.Sub(r.now()), time.Millisecond)}, nil
}

// takeOffIfLost takes a node that is lost off its Instances, and returns when to
// look again; zero if not before something happens.
func (r *reconciler) takeOffIfLost(ctx context.Context, name string, node *corev1.Node) (again time.Time, err error) {
	if r.options.keepsInstances() {
		return time.Time{}, nil
	}
	instances, err := r.instancesOn(ctx, name)
	if err != nil || len(instances) == 0 && r.outages[name] == nil {
		return time.Time{}, err
	}
	now := r.now()
	state, uid := stateOf(node)
	outage := r.outages.see(name, state, uid, now)
	if outage == nil {
		return time.Time{}, nil
	}
	var due []*v0.Instance
	for i := range instances {
		if at := outage.due(client.ObjectKeyFromObject(&instances[i]), r.options); at.After(now) {
			again = sooner(again, at)
		} else {
			due = append(due, &instances[i])
		}
	}
	if len(due) == 0 {
		return again, nil
	}

	// The cache may be behind, after the API server was away above all.
	today, err := read(ctx, r.api, name)
	if err != nil {
		return time.Time{}, err
	}
	if stateToday, uidToday := stateOf(today); stateToday != state || uidToday != uid {
		return sooner(again, now.Add(soon)), nil
	}
	used := use{}
	if state != Gone {
		if err := r.notePods(ctx, name, used); err != nil {
			return time.Time{}, err
		}
	}
	var errs []error
	for _, instance := range due {
		key := client.ObjectKeyFromObject(instance)
		action := decide(instance, name, used.of(instance))
		if action == Keep {
			outage.inUse(key, now)
			again = sooner(again, outage.due(key, r.options))
			continue
		}
		if err := r.do(ctx, action, instance, name); err != nil {
			errs = append(errs, fmt.Errorf("take node %s, which is %s, off Instance %s: %w", name, state, key, err))
			continue
		}
		outage.tookOff(key, now)
		log.FromContext(ctx).Info("the node is lost", "state", state, "instance", key, "action", action)
		if action == Delete {
			r.events.Eventf(instance, nil, corev1.EventTypeWarning, "NodeLost", "Delete", "node %s, the only one that can reach the device, is %s", name, state)
		} else {
			r.events.Eventf(instance, nil, corev1.EventTypeWarning, "NodeLost", "TakeOff", "node %s is %s: it is taken off this Instance, and its slots are free", name, state)
		}
	}
	return again, errors.Join(errs...)
}

// do carries out an action.
func (r *reconciler) do(ctx context.Context, action Action, instance *v0.Instance, node string) error {
	if action == Delete {
		return remove(ctx, r.client, instance)
	}
	return patch(takeOff(instance, node), func(data client.Patch) error {
		target := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}}
		return r.client.Patch(ctx, target, data, client.FieldOwner(v0.FieldManagerController))
	})
}

// instancesOn are the Instances that a node sees or holds a slot of.
func (r *reconciler) instancesOn(ctx context.Context, node string) ([]v0.Instance, error) {
	var list v0.InstanceList
	if err := r.cache.List(ctx, &list, client.MatchingFields{byNode: node}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Instances of node %s: %w", node, err)
	}
	return list.Items, nil
}

// notePods notes what the Pods of a node ask for.
func (r *reconciler) notePods(ctx context.Context, node string, used use) error {
	for following := ""; ; {
		var pods corev1.PodList
		if err := r.api.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node},
			client.Limit(podsAtOnce), client.Continue(following)); err != nil {
			return fmt.Errorf("list the Pods of node %s: %w", node, err)
		}
		used.note(pods.Items)
		if following = pods.Continue; following == "" {
			return nil
		}
	}
}

// buryDead removes resources from a node's status that nothing has the name of,
// and returns when to look again; zero if not before something happens.
func (r *reconciler) buryDead(ctx context.Context, name string, node *corev1.Node) (time.Time, error) {
	if node == nil {
		delete(r.graves, name)
		return time.Time{}, nil
	}
	var found []corev1.ResourceName
	if len(emptyResources(node)) > 0 {
		exists, err := r.names(ctx)
		if err != nil {
			return time.Time{}, err
		}
		found = dead(node, exists)
	}
	if r.graves[name] == nil {
		r.graves[name] = graves{}
	}
	now := r.now()
	due, again := r.graves[name].due(found, r.options.DeadDelay, now)
	if len(r.graves[name]) == 0 {
		delete(r.graves, name)
	}
	if len(due) == 0 {
		return again, nil
	}
	if err := patch(removal(node, due), func(data client.Patch) error {
		target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return r.client.Status().Patch(ctx, target, data, client.FieldOwner(v0.FieldManagerController))
	}); err != nil {
		return time.Time{}, fmt.Errorf("remove resources of devices that are gone from the status of node %s: %w", name, err)
	}
	r.graves[name].buried(due, now)
	log.FromContext(ctx).Info("removed resources of devices that are gone", "resources", due)
	return again, nil
}

// names are those of all Instances and Configurations.
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

// read reads a node; nil if there is none.
func read(ctx context.Context, from client.Reader, name string) (*corev1.Node, error) {
	var node corev1.Node
	err := from.Get(ctx, types.NamespacedName{Name: name}, &node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	return &node, nil
}

// remove deletes an Instance if it is as it was read.
func remove(ctx context.Context, to client.Client, instance *v0.Instance) error {
	target := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: instance.Namespace, Name: instance.Name}}
	return outcome(to.Delete(ctx, target, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &instance.UID, ResourceVersion: &instance.ResourceVersion}))
}

func patch(operations []operation, send func(client.Patch) error) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	return outcome(send(client.RawPatch(types.JSONPatchType, data)))
}

// outcome is that of a request which is bound to a version. An object that is
// gone is as good as done.
func outcome(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return fmt.Errorf("it is no longer as it was when this was decided; deciding again: %w", err)
	}
	return err
}
