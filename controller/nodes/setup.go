package nodes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
)

// The cache's indexes: of Instances by [nodesOf], and of Configurations by [failingNodes].
const (
	byNode        = "nodes"
	byFailingNode = "failing nodes"
)

// Setup adds the package's controllers to a manager whose scheme has Akri's kinds,
// and adds nodes and Pods to the scheme. The manager's cache should [Reduce] nodes.
func Setup(ctx context.Context, mgr manager.Manager, options Options) error {
	options, err := options.complete()
	if err != nil {
		return err
	}
	addToScheme(mgr.GetScheme())
	indexed := func(object client.Object) []string { return nodesOf(object.(*v0.Instance)) }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v0.Instance{}, byNode, indexed); err != nil {
		return fmt.Errorf("index Instances by node: %w", err)
	}
	failing := func(object client.Object) []string { return failingNodes(object.(*v0.Configuration)) }
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v0.Configuration{}, byFailingNode, failing); err != nil {
		return fmt.Errorf("index Configurations by node: %w", err)
	}
	if err := setupNodes(mgr, options); err != nil {
		return fmt.Errorf("set up the node controller: %w", err)
	}
	if options.keepsInstances() {
		return nil
	}
	if err := setupOrphans(mgr, options); err != nil {
		return fmt.Errorf("set up the controller for Instances without nodes: %w", err)
	}
	return nil
}

func setupNodes(mgr manager.Manager, options Options) error {
	c, err := newController("node", mgr, &reconciler{
		cache: mgr.GetCache(), api: mgr.GetAPIReader(), client: mgr.GetClient(), options: options, now: time.Now,
		outages: outages{}, closed: map[string]bool{}, stale: map[string]staleNode{},
		events: mgr.GetEventRecorder(v0.FieldManagerController),
	})
	if err != nil {
		return err
	}
	itself := &handler.TypedEnqueueRequestForObject[*corev1.Node]{}
	changed := predicate.TypedFuncs[*corev1.Node]{UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
		return !sameNode(e.ObjectOld, e.ObjectNew)
	}}
	for _, watch := range []source.Source{
		source.Kind(mgr.GetCache(), &corev1.Node{}, itself, changed),
		source.Kind(mgr.GetCache(), &v0.Instance{}, nodesOfInstance(mgr.GetCache())),
		source.Kind(mgr.GetCache(), &v0.Configuration{}, nodesOfConfiguration(mgr.GetCache())),
	} {
		if err := c.Watch(watch); err != nil {
			return err
		}
	}
	return nil
}

func setupOrphans(mgr manager.Manager, options Options) error {
	c, err := newController("unseen", mgr, &unseenInstances{
		cache: mgr.GetCache(), client: mgr.GetClient(), grace: options.EmptyGrace, now: time.Now,
		since: map[types.NamespacedName]unseenInstance{}, events: mgr.GetEventRecorder(v0.FieldManagerController),
	})
	if err != nil {
		return err
	}
	itself := &handler.TypedEnqueueRequestForObject[*v0.Instance]{}
	relevant := predicate.TypedFuncs[*v0.Instance]{
		CreateFunc: func(e event.TypedCreateEvent[*v0.Instance]) bool { return unseen(e.Object) },
		UpdateFunc: func(e event.TypedUpdateEvent[*v0.Instance]) bool {
			return unseen(e.ObjectOld) || unseen(e.ObjectNew)
		},
		DeleteFunc: func(e event.TypedDeleteEvent[*v0.Instance]) bool { return unseen(e.Object) },
	}
	return c.Watch(source.Kind(mgr.GetCache(), &v0.Instance{}, itself, relevant))
}

func newController(name string, mgr manager.Manager, r reconcile.Reconciler) (controller.Controller, error) {
	return controller.New(name, mgr, controller.Options{
		Reconciler:              r,
		MaxConcurrentReconciles: 1,         // the reconcilers have state without a lock
		SkipNameValidation:      new(true), // tests run several managers in one process
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, 5*time.Minute),
	})
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue adds nodes to the queue.
func enqueue(names []string, q queue) {
	for _, name := range names {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
}

// nodesOfInstance enqueues the nodes of an Instance that is new or whose nodes
// changed, and the nodes whose status still names an Instance that was deleted.
func nodesOfInstance(nodes cache.Cache) handler.TypedEventHandler[*v0.Instance, reconcile.Request] {
	return handler.TypedFuncs[*v0.Instance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Instance], q queue) {
			enqueue(nodesOf(e.Object), q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Instance], q queue) {
			if e.ObjectOld.Spec.Capacity != e.ObjectNew.Spec.Capacity || !slices.Equal(e.ObjectOld.Spec.Nodes, e.ObjectNew.Spec.Nodes) ||
				!maps.Equal(e.ObjectOld.Spec.DeviceUsage, e.ObjectNew.Spec.DeviceUsage) ||
				!maps.Equal(e.ObjectOld.Labels, e.ObjectNew.Labels) {
				enqueue(nodesOf(e.ObjectNew), q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v0.Instance], q queue) {
			enqueue(nodesWithEmpty(ctx, nodes, e.Object.Name), q)
		},
	}
}

// nodesOfConfiguration enqueues the nodes whose failures a Configuration begins to list,
// and the nodes whose status still names a Configuration that was deleted.
func nodesOfConfiguration(nodes cache.Cache) handler.TypedEventHandler[*v0.Configuration, reconcile.Request] {
	return handler.TypedFuncs[*v0.Configuration, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Configuration], q queue) {
			enqueue(failingNodes(e.Object), q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Configuration], q queue) {
			before := failingNodes(e.ObjectOld)
			enqueue(slices.DeleteFunc(failingNodes(e.ObjectNew), func(node string) bool { return slices.Contains(before, node) }), q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*v0.Configuration], q queue) {
			enqueue(nodesWithEmpty(ctx, nodes, e.Object.Name), q)
		},
	}
}

// nodesWithEmpty returns the nodes on which the resource of that name is 0.
func nodesWithEmpty(ctx context.Context, from cache.Cache, name string) []string {
	var list corev1.NodeList
	if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started: the nodes' own events will follow
	}
	var names []string
	for i := range list.Items {
		if _, found := list.Items[i].Status.Capacity[corev1.ResourceName(v0.ResourceName(name))]; found {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}
