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
	"akri.sh/akri/controller/templates"
)

// crdEvents requeues every group, and its Instances, that has a template of the API
// group in which a CustomResourceDefinition was created, deleted or changed.
func crdEvents(
	cache client.Reader, mapper *kinds.Mapper, memory *parentMemory, queues *parentQueues,
) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	changed := func(ctx context.Context, crd *metav1.PartialObjectMetadata) {
		resource, group := kinds.Defined(crd)
		mapper.Changed(group)
		memory.informers.Forget(schema.GroupResource{Group: group, Resource: resource})
		for _, parent := range parentsUsing(ctx, cache, memory.templates, group) {
			queues.add(parent)
		}
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			if !kinds.Preexisting(e.Object, e.IsInInitialList) {
				changed(ctx, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			if e.ObjectOld.ResourceVersion != e.ObjectNew.ResourceVersion { // otherwise the watch was interrupted
				changed(ctx, e.ObjectNew)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], _ requestQueue) {
			changed(ctx, e.Object)
		},
	}
}

// parentsUsing returns the Configurations with a template of an API group, and
// their Instances.
func parentsUsing(ctx context.Context, cache client.Reader, compiled *templates.Cache, group string) []ownership.Parent {
	var configurations v0.ConfigurationList
	if err := cache.List(ctx, &configurations, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has not started: the Configurations' own events follow
	}
	var parents []ownership.Parent
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		if !usesGroup(compiled.Get(configuration), group) {
			continue
		}
		parents = append(parents, ownership.ConfigurationParent(configuration).ByName())
		instances, err := instancesOf(ctx, cache, client.ObjectKeyFromObject(configuration))
		if err != nil {
			continue
		}
		for j := range instances {
			parents = append(parents, ownership.InstanceParent(&instances[j]).ByName())
		}
	}
	return parents
}

func usesGroup(compiled *templates.Templates, group string) bool {
	return slices.ContainsFunc(compiled.Kinds(), func(kind schema.GroupVersionKind) bool { return kind.Group == group })
}
