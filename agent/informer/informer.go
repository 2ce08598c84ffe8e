package informer

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Objects returns an informer of Akri's objects of a resource that have some labels. It stores
// the results of reduce, which may modify its argument.
func Objects(
	client dynamic.ResourceInterface, labels string, reduce func(*unstructured.Unstructured) (metav1.Object, error),
) cache.SharedIndexInformer {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = labels
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.LabelSelector = labels
			return client.Watch(ctx, o)
		},
	}
	shared := cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, cache.Indexers{})
	_ = shared.SetTransform(transform(reduce)) // fails only if the informer is running
	return shared
}

// Informer caches objects of the core API. It has synced only when its handler has been
// called, and takes 60 KB, half of what a shared informer takes: an agent may watch hundreds
// of Secrets.
type Informer struct {
	cache.Store
	controller cache.Controller
}

// Core returns an informer of objects of the core API, which have the type of the example.
// It calls attempted with the result of each list, and of each attempt to begin a watch; the
// next attempt waits until attempted returns. Informers that share a turn list one after the
// other, because each object may have a megabyte, although little of it is kept.
func Core[T object](
	client rest.Interface, resource, namespace string, selector fields.Selector, turn *sync.Mutex, attempted func(context.Context, error),
	example T, reduce func(T) metav1.Object, handler cache.ResourceEventHandler,
) *Informer {
	source := cache.NewListWatchFromClient(client, resource, namespace, selector)
	store, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: listWatch{inTurn: turn != nil, ListWatch: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				if turn != nil {
					turn.Lock()
				}
				list, err := source.ListWithContext(ctx, o)
				if turn != nil {
					turn.Unlock()
				}
				attempted(ctx, err)
				return list, err
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
				watch, err := source.WatchWithContext(ctx, o)
				attempted(ctx, err)
				return watch, err
			},
		}},
		ObjectType: example, Handler: handler,
		Transform: transform(func(object T) (metav1.Object, error) { return reduce(object), nil }),
	})
	return &Informer{store, controller}
}

// listWatch is a source of objects. If lists take turns, none is sent as a watch, whose buffer
// would keep the size of the largest object.
type listWatch struct {
	*cache.ListWatch

	inTurn bool
}

// IsWatchListSemanticsUnSupported is what client-go asks for.
func (l listWatch) IsWatchListSemanticsUnSupported() bool { return l.inTurn }

// Run watches the objects until ctx is done. It does not log errors.
func (i *Informer) Run(ctx context.Context) {
	i.controller.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

// Synced returns a channel that is closed when the handler has been called with all objects.
func (i *Informer) Synced() <-chan struct{} { return i.controller.HasSyncedChecker().Done() }

// HasSynced reports whether the handler has been called with all objects.
func (i *Informer) HasSynced() bool { return i.controller.HasSynced() }

// object is an object as it is listed.
type object interface {
	runtime.Object
	metav1.Object
}

func transform[T object](reduce func(T) (metav1.Object, error)) cache.TransformFunc {
	return func(object any) (any, error) {
		whole, ok := object.(T)
		if !ok {
			return object, nil // already reduced, or a tombstone
		}
		whole.SetManagedFields(nil)
		return reduce(whole)
	}
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
