// Package informer keeps a copy of some objects of the API server, reduced to what
// the agent reads.
//
// It is client-go's informer over the dynamic client: typed clients draw every
// type of Kubernetes into the binary and its memory. Objects are converted and
// stripped before they are stored, so the whole object is never kept.
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

// Objects returns an informer of the objects of a resource that the selection,
// which may be nil, picks. What it stores and hands out is what reduce makes of
// an object; reduce may change its argument.
func Objects(client dynamic.ResourceInterface, selection func(*metav1.ListOptions), reduce func(*unstructured.Unstructured) (metav1.Object, error)) cache.SharedIndexInformer {
	options := func(o metav1.ListOptions) metav1.ListOptions {
		if selection != nil {
			selection(&o)
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
	informer := cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, cache.Indexers{})
	// Fails only on an informer that runs already.
	_ = informer.SetTransform(func(object any) (any, error) {
		whole, ok := object.(*unstructured.Unstructured)
		if !ok {
			return object, nil // reduced already, or a tombstone
		}
		whole.SetManagedFields(nil)
		return reduce(whole)
	})
	return informer
}

// Convert reads an object into a type of ours.
func Convert(object *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}
