package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Objects returns an informer of Akri's objects of a resource. restrict narrows the
// list and the watch; it may be nil. The informer stores the results of reduce,
// which may modify its argument.
func Objects(
	client dynamic.ResourceInterface,
	restrict func(*metav1.ListOptions),
	reduce func(*unstructured.Unstructured) (metav1.Object, error),
) cache.SharedIndexInformer {
	options := func(o metav1.ListOptions) metav1.ListOptions {
		if restrict != nil {
			restrict(&o)
		}
		return o
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return client.Watch(ctx, options(o))
		},
	}
	return of(source, &unstructured.Unstructured{}, reduce)
}

// Core returns an informer of objects of the core API, which have the type of the example.
// It calls attempted with the result of each list, and of each attempt to begin a watch:
// errors are not logged.
func Core[T object](
	client rest.Interface, resource, namespace string, selector fields.Selector, attempted func(error),
	example T, reduce func(T) (metav1.Object, error),
) cache.SharedIndexInformer {
	source := cache.NewListWatchFromClient(client, resource, namespace, selector)
	shared := of(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := source.ListWithContext(ctx, o)
			attempted(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			watch, err := source.WatchWithContext(ctx, o)
			attempted(err)
			return watch, err
		},
	}, example, reduce)
	// The setters fail only if the informer is running.
	_ = shared.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {})
	return shared
}

// object is an object as it is listed.
type object interface {
	runtime.Object
	metav1.Object
}

func of[T object](source cache.ListerWatcher, example T, reduce func(T) (metav1.Object, error)) cache.SharedIndexInformer {
	shared := cache.NewSharedIndexInformer(source, example, 0, cache.Indexers{})
	_ = shared.SetTransform(func(object any) (any, error) {
		whole, ok := object.(T)
		if !ok {
			return object, nil // already reduced, or a tombstone
		}
		whole.SetManagedFields(nil)
		return reduce(whole)
	})
	return shared
}

// Events returns a handler that calls changed with each object that is new or has changed,
// after before it, or nil; and gone with each that is deleted, also if the watch has missed
// that and shows the next object of its name.
func Events[T interface {
	comparable
	metav1.Object
}](changed func(before, now T), gone func(T)) cache.ResourceEventHandler {
	var none T
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { changed(none, object.(T)) },
		UpdateFunc: func(object, next any) {
			before, now := object.(T), next.(T)
			if before.GetUID() != now.GetUID() {
				gone(before)
				before = none
			}
			changed(before, now)
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			gone(object.(T))
		},
	}
}

// Convert converts an object to a Go type.
func Convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
