package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// requestQueue is the queue of a controller.
type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Predicates of the events for which a parent is reconciled.
var (
	rendersOrCountsDifferently = predicate.TypedFuncs[*v0.Instance]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Instance]) bool {
		return valuesChanged(e.ObjectOld, e.ObjectNew) || v0.FreeSlots(e.ObjectOld) != v0.FreeSlots(e.ObjectNew)
	}}
	valuesOrConditionsChanged = predicate.TypedFuncs[*v0.Instance]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Instance]) bool {
		return valuesChanged(e.ObjectOld, e.ObjectNew) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.Status.Conditions, e.ObjectNew.Status.Conditions)
	}}
	generationChanged = predicate.TypedFuncs[*v0.Configuration]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Configuration]) bool {
		return specChanged(e.ObjectOld, e.ObjectNew)
	}}
	generationOrDiscoveryChanged = predicate.TypedFuncs[*v0.Configuration]{UpdateFunc: func(e event.TypedUpdateEvent[*v0.Configuration]) bool {
		return specChanged(e.ObjectOld, e.ObjectNew) ||
			!equality.Semantic.DeepEqual(e.ObjectOld.Status.DiscoveryFailures, e.ObjectNew.Status.DiscoveryFailures)
	}}
)

// valuesChanged reports whether an Instance may render differently, or has begun to
// be deleted. Claims of slots change neither.
func valuesChanged(before, after *v0.Instance) bool {
	return before.UID != after.UID ||
		before.Spec.ConfigurationName != after.Spec.ConfigurationName ||
		before.Spec.Shared != after.Spec.Shared ||
		!maps.Equal(before.Spec.BrokerProperties, after.Spec.BrokerProperties) ||
		!slices.Equal(before.Spec.Nodes, after.Spec.Nodes) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil)
}

// specChanged reports whether a Configuration was edited, has begun to be deleted, or was
// replaced: if it is deleted and created again while the watch is interrupted, the next
// list delivers that as an update, and both are of generation 1.
func specChanged(before, after *v0.Configuration) bool {
	return before.UID != after.UID || before.Generation != after.Generation
}

// instancesOfGroup requeues all Instances of a Configuration.
func instancesOfGroup(cache client.Reader) handler.TypedEventHandler[*v0.Configuration, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, configuration *v0.Configuration) []reconcile.Request {
		instances, err := instancesOf(ctx, cache, client.ObjectKeyFromObject(configuration))
		if err != nil {
			return nil // the cache has not started: the Instances' own events follow
		}
		requests := make([]reconcile.Request, len(instances))
		for i := range instances {
			requests[i].NamespacedName = client.ObjectKeyFromObject(&instances[i])
		}
		return requests
	})
}

// groupOfInstance requeues the group of an Instance after a delay, in which more
// changes may follow.
func groupOfInstance(delays *groupDelays) handler.TypedEventHandler[*v0.Instance, reconcile.Request] {
	add := func(instance *v0.Instance, queue requestQueue) {
		group := groupOf(instance)
		queue.AddAfter(reconcile.Request{NamespacedName: group}, delays.delay(group))
	}
	return handler.TypedFuncs[*v0.Instance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Instance], q requestQueue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Instance], q requestQueue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v0.Instance], q requestQueue) { add(e.Object, q) },
	}
}

// itself returns a handler that requeues the parent of an event, after it has called see
// with the parent: a pass sees only the latest version.
func itself[T client.Object](see func(T)) handler.TypedEventHandler[T, reconcile.Request] {
	requeue := &handler.TypedEnqueueRequestForObject[T]{}
	return handler.TypedFuncs[T, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q requestQueue) {
			see(e.Object)
			requeue.Create(ctx, e, q)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q requestQueue) {
			see(e.ObjectNew)
			requeue.Update(ctx, e, q)
		},
		DeleteFunc: requeue.Delete,
	}
}

// observed returns a handler that calls see with each object that arrives in the
// cache, and requeues nothing.
func observed[T client.Object](see func(metav1.Object)) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedFuncs[T, reconcile.Request]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], _ requestQueue) { see(e.ObjectNew) },
	}
}

// parentQueues connects the watches of objects with the two controllers.
type parentQueues struct {
	mu                      sync.Mutex
	instance, configuration requestQueue
}

// source returns a source that keeps a controller's queue when the controller
// starts.
func (p *parentQueues) source(level templating.Level) source.Source {
	return source.Func(func(_ context.Context, queue requestQueue) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if level == templating.InstanceLevel {
			p.instance = queue
		} else {
			p.configuration = queue
		}
		return nil
	})
}

// add requeues a parent.
func (p *parentQueues) add(parent ownership.Parent) { p.addAfter(parent, 0) }

// addAfter requeues a parent after a delay.
func (p *parentQueues) addAfter(parent ownership.Parent, delay time.Duration) {
	p.mu.Lock()
	queue := p.configuration
	if parent.Level == templating.InstanceLevel {
		queue = p.instance
	}
	p.mu.Unlock()
	if queue != nil { // only a controller that has started asks for watches
		queue.AddAfter(reconcile.Request{NamespacedName: parent.NamespacedName}, delay)
	}
}
