package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// requestQueue is the queue of a controller.
type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Predicates of the events for which a parent is reconciled.
var (
	rendersOrCountsDifferently = onUpdate(func(before, after *v0.Instance) bool {
		return valuesChanged(before, after) || v0.FreeSlots(before) != v0.FreeSlots(after)
	})
	valuesOrConditionsChanged = onUpdate(func(before, after *v0.Instance) bool {
		return valuesChanged(before, after) || !equality.Semantic.DeepEqual(before.Status.Conditions, after.Status.Conditions)
	})
	generationChanged            = onUpdate(specChanged)
	generationOrDiscoveryChanged = onUpdate(func(before, after *v0.Configuration) bool {
		return specChanged(before, after) || !equality.Semantic.DeepEqual(before.Status.DiscoveryFailures, after.Status.DiscoveryFailures)
	})
)

// onUpdate returns a predicate of the updates that changed something.
func onUpdate[T any](changed func(before, after T) bool) predicate.TypedFuncs[T] {
	return predicate.TypedFuncs[T]{UpdateFunc: func(e event.TypedUpdateEvent[T]) bool { return changed(e.ObjectOld, e.ObjectNew) }}
}

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
func groupOfInstance(delay func(group types.NamespacedName) time.Duration) handler.TypedEventHandler[*v0.Instance, reconcile.Request] {
	add := func(instance *v0.Instance, queue requestQueue) {
		group := groupOf(instance)
		queue.AddAfter(reconcile.Request{NamespacedName: group}, delay(group))
	}
	return handler.TypedFuncs[*v0.Instance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Instance], q requestQueue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Instance], q requestQueue) { add(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v0.Instance], q requestQueue) { add(e.Object, q) },
	}
}

// itself requeues the parent of an event, after it has called see with the parent: a pass
// sees only the latest version.
func itself[T client.Object](see func(T)) handler.TypedEventHandler[T, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, object T) []reconcile.Request {
		see(object)
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	})
}

// parentQueues are the queues of the two controllers, for what requeues parents of both.
type parentQueues map[templating.Level]requestQueue

// add requeues a parent.
func (p parentQueues) add(parent ownership.Parent) { p.addAfter(parent, 0) }

// addAfter requeues a parent after a delay.
func (p parentQueues) addAfter(parent ownership.Parent, delay time.Duration) {
	p[parent.Level].AddAfter(reconcile.Request{NamespacedName: parent.NamespacedName}, delay)
}
