package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/controller/ownership"
)

// crdEvents requeues every group, and its Instances, that has a template of the API
// group in which a CustomResourceDefinition was created, deleted or changed.
func crdEvents(
	cache client.Reader, mapper *kinds.Mapper, memory *memory,
) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	changed := func(ctx context.Context, crd *metav1.PartialObjectMetadata, deleted bool) {
		resource, group := kinds.Defined(crd)
		mapper.Changed(group)
		memory.informers.Forget(schema.GroupResource{Group: group, Resource: resource}, deleted)
		memory.requeueUsers(ctx, cache, group)
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			if !kinds.Preexisting(e.Object, e.IsInInitialList) {
				changed(ctx, e.Object, false)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			if e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion { // otherwise the watch was interrupted
				changed(ctx, e.ObjectNew, e.ObjectOld.UID != e.ObjectNew.UID)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			changed(ctx, e.Object, true)
		},
	}
}

// requeueUsers requeues the Configurations with a template of an API group, and their Instances.
// If the cache has not started, their own events follow.
func (m *memory) requeueUsers(ctx context.Context, cache client.Reader, apiGroup string) {
	var configurations v0.ConfigurationList
	if cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy) != nil {
		return
	}
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		used := func(kind schema.GroupVersionKind) bool { return kind.Group == apiGroup }
		if !slices.ContainsFunc(m.templates.Get(configuration).Kinds(), used) {
			continue
		}
		m.queues.add(ownership.ConfigurationParent(configuration))
		instances, _ := instancesOf(ctx, cache, client.ObjectKeyFromObject(configuration))
		for j := range instances {
			m.queues.add(ownership.InstanceParent(&instances[j]))
		}
	}
}
