package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
)

// byNode is the cache's index of Instances by [Of].
const byNode = "nodes"

// Setup adds the package's controllers to a manager whose scheme has Akri's kinds,
// and adds nodes and Pods to the scheme. The manager's cache should [Reduce] nodes.
func Setup(ctx context.Context, mgr manager.Manager, options Options) error {
	mgr.GetScheme().AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(mgr.GetScheme(), corev1.SchemeGroupVersion)
	err := newController[version](mgr, "stale-resources").
		Watches(&corev1.Node{}, after(options.StaleDelay, func(node *corev1.Node) bool { return len(emptyResources(node)) > 0 })).
		Complete(&staleResources{cache: mgr.GetCache(), client: mgr.GetClient()})
	if err == nil && options.NotReadyGrace > 0 {
		err = setupNodes(ctx, mgr, options)
	}
	if err != nil {
		return fmt.Errorf("set up the controllers of nodes: %w", err)
	}
	return nil
}

func setupNodes(ctx context.Context, mgr manager.Manager, options Options) error {
	instance := func(object client.Object) []string { return Of(object.(*v0.Instance)) }
	failures := func(object client.Object) []string { return failingNodes(object.(*v0.Configuration)) }
	recorder := mgr.GetEventRecorder(v0.FieldManagerController)
	return errors.Join(
		mgr.GetFieldIndexer().IndexField(ctx, &v0.Instance{}, byNode, instance),
		newController[reconcile.Request](mgr, "node").
			For(&corev1.Node{}, onUpdate(func(old, changed client.Object) bool { // no heartbeats
				before, after := old.(*corev1.Node), changed.(*corev1.Node)
				return statusOf(before) != statusOf(after) || takesPods(before) != takesPods(after)
			})).
			Watches(&v0.Instance{}, enqueue(instance),
				builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
			Watches(&v0.Configuration{}, enqueue(failures), onUpdate(func(before, after client.Object) bool {
				return !slices.Equal(failures(before), failures(after))
			})).
			Complete(&reconciler{
				cache: mgr.GetCache(), api: mgr.GetAPIReader(), client: mgr.GetClient(), options: options,
				outages: outages{}, events: recorder,
			}),
		newController[version](mgr, "unseen").
			Watches(&v0.Instance{}, after(options.EmptyGrace, unseen)).
			Complete(&unseenInstances{cache: mgr.GetCache(), client: mgr.GetClient(), grace: options.EmptyGrace, events: recorder}),
	)
}

func newController[request comparable](mgr manager.Manager, name string) *builder.TypedBuilder[request] {
	return builder.TypedControllerManagedBy[request](mgr).Named(name).WithOptions(controller.TypedOptions[request]{
		MaxConcurrentReconciles: 1,         // the reconcilers have state without a lock
		SkipNameValidation:      new(true), // tests run several managers in one process
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[request](200*time.Millisecond, 5*time.Minute),
	})
}

func onUpdate(relevant func(before, after client.Object) bool) builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return relevant(e.ObjectOld, e.ObjectNew) }})
}

// enqueue returns a handler that enqueues the nodes that an object mentions, and those that it
// mentioned before.
func enqueue(mentioned func(client.Object) []string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) (requests []reconcile.Request) {
		for _, name := range mentioned(object) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
		return requests
	})
}

// version is an object with its content. A node's [Reduce]d metadata has no generation.
type version struct {
	types.NamespacedName
	uid        types.UID
	generation int64
}

func versionOf(object client.Object) version {
	return version{client.ObjectKeyFromObject(object), object.GetUID(), object.GetGeneration()}
}

// after returns a handler that enqueues what concerns a controller when some time has passed,
// once for all events of that time.
func after[T client.Object](delay time.Duration, concerns func(T) bool) handler.TypedEventHandler[client.Object, version] {
	type queue = workqueue.TypedRateLimitingInterface[version]
	later := func(object client.Object, q queue) {
		if concerns(object.(T)) {
			q.AddAfter(versionOf(object), delay)
		}
	}
	return handler.TypedFuncs[client.Object, version]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { later(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { later(e.ObjectNew, q) },
	}
}
