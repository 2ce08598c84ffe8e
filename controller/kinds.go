package controller

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/controller/watch"
)

// kindsChanged looks again at every group, and its Instances, that has a template
// of the API group in which a CustomResourceDefinition came, went or changed.
func (o *objects) kindsChanged(reader client.Reader, compiled *templates.Cache, parents *parentQueues) handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	look := func(ctx context.Context, definition *metav1.PartialObjectMetadata, gone bool) {
		resource, group, _ := strings.Cut(definition.Name, ".") // its name is RESOURCE.GROUP
		o.informers.Forget(func(watched schema.GroupVersionResource, state watch.State) bool {
			return watched.Group == group && watched.Resource == resource && (gone || !state.Synced)
		})
		for _, parent := range parentsUsing(ctx, reader, compiled, group) {
			parents.add(parent)
		}
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], _ queue) {
			look(ctx, e.Object, false)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], _ queue) {
			look(ctx, e.ObjectNew, false)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], _ queue) {
			look(ctx, e.Object, true)
		},
	}
}

// parentsUsing are the Configurations with a template of an API group, and their
// Instances.
func parentsUsing(ctx context.Context, reader client.Reader, compiled *templates.Cache, group string) []ownership.Parent {
	var configurations v0.ConfigurationList
	if err := reader.List(ctx, &configurations); err != nil {
		return nil // the cache is not started: the Configurations' own events are to come
	}
	var parents []ownership.Parent
	for i := range configurations.Items {
		configuration := &configurations.Items[i]
		if !usesGroup(compiled.Get(configuration), group) {
			continue
		}
		name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
		parents = append(parents, ownership.ConfigurationParent(configuration).ByName())
		instances, err := instancesOf(ctx, reader, name)
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
	for _, kind := range compiled.Kinds() {
		if kind.Group == group {
			return true
		}
	}
	return false
}

// CacheOptions keep the manager's cache small: of our own kinds everything but
// the managed fields, of CustomResourceDefinitions the names only, and little of
// nodes.
func CacheOptions() cache.Options {
	strip := cache.TransformStripManagedFields()
	return cache.Options{
		DefaultTransform: func(object any) (any, error) {
			if node, ok := object.(*corev1.Node); ok {
				return nodes.Reduce(node), nil
			}
			return strip(object)
		},
		ByObject: map[client.Object]cache.ByObject{
			definitions(): {Transform: func(object any) (any, error) {
				if definition, ok := object.(*metav1.PartialObjectMetadata); ok {
					definition.ManagedFields, definition.Annotations, definition.Labels = nil, nil, nil
				}
				return object, nil
			}},
		},
	}
}
