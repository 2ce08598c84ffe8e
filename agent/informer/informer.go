package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Objects returns an informer of the objects of a resource. restrict narrows the
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
	shared := cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, cache.Indexers{})
	// SetTransform fails only if the informer is running.
	_ = shared.SetTransform(func(object any) (any, error) {
		whole, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil // already reduced, or a tombstone
		}
		whole.SetManagedFields(nil)
		return reduce(whole)
	})
	return shared
}

// Convert converts an object to a Go type.
func Convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
