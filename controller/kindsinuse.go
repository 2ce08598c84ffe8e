package controller

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
)

// kindsInUse counts, for each Configuration, the Instances that have objects of a
// kind. It follows the events of Instances, so that a pass of a group need not read
// the inventories of all.
type kindsInUse struct {
	mu     sync.Mutex
	groups map[types.NamespacedName]map[schema.GroupVersionKind]int
}

func newKindsInUse() *kindsInUse {
	return &kindsInUse{groups: map[types.NamespacedName]map[schema.GroupVersionKind]int{}}
}

// of returns the kinds of the objects of a Configuration's Instances.
func (k *kindsInUse) of(group types.NamespacedName) []schema.GroupVersionKind {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.groups[group]))
}

// groupOf returns the name of an Instance's Configuration.
func groupOf(instance *v0.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
}

// add counts an Instance, by 1 or -1.
func (k *kindsInUse) add(instance *v0.Instance, by int) {
	group, kinds := groupOf(instance), inventory.Kinds(instance.Status.Resources)
	k.mu.Lock()
	defer k.mu.Unlock()
	counts := k.groups[group]
	if counts == nil {
		counts = map[schema.GroupVersionKind]int{}
		k.groups[group] = counts
	}
	for _, kind := range kinds {
		if counts[kind] += by; counts[kind] == 0 {
			delete(counts, kind)
		}
	}
	if len(counts) == 0 {
		delete(k.groups, group)
	}
}

// handler returns a handler that counts Instances and requeues nothing.
func (k *kindsInUse) handler() handler.TypedEventHandler[*v0.Instance, reconcile.Request] {
	return handler.TypedFuncs[*v0.Instance, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v0.Instance], _ requestQueue) { k.add(e.Object, 1) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v0.Instance], _ requestQueue) {
			k.add(e.ObjectNew, 1)
			k.add(e.ObjectOld, -1)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v0.Instance], _ requestQueue) { k.add(e.Object, -1) },
	}
}
