package kinds

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// CRD returns an empty CustomResourceDefinition, whose metadata can be watched.
func CRD() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	return crd
}

// Trim removes from a cached CustomResourceDefinition what nobody reads. It is a
// transform for caches.
func Trim(object any) (any, error) {
	if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
		crd.ManagedFields, crd.Annotations, crd.Labels = nil, nil, nil
	}
	return object, nil
}

// Defined returns what a CustomResourceDefinition defines: its name is RESOURCE.GROUP.
func Defined(crd *metav1.PartialObjectMetadata) (resource, group string) {
	resource, group, _ = strings.Cut(crd.Name, ".")
	return resource, group
}

// Preexisting reports whether a CustomResourceDefinition that a watch adds is no
// change: it is in the watch's first list, and not new.
func Preexisting(crd *metav1.PartialObjectMetadata, isInInitialList bool) bool {
	return isInInitialList && time.Since(crd.CreationTimestamp.Time) > settling
}

// version returns the resourceVersion of a CustomResourceDefinition.
func version(object any) string {
	crd, _ := object.(*metav1.PartialObjectMetadata)
	return crd.GetResourceVersion()
}

// Watch calls [Mapper.Changed] for the CustomResourceDefinitions that a cache sees.
func (m *Mapper) Watch(ctx context.Context, informers cache.Informers) error {
	changed := func(object any) {
		if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
			_, group := Defined(crd)
			m.Changed(group)
		}
	}
	informer, err := informers.GetInformer(ctx, CRD())
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, isInInitialList bool) {
				if crd, ok := object.(*metav1.PartialObjectMetadata); ok && !Preexisting(crd, isInInitialList) {
					changed(crd)
				}
			},
			UpdateFunc: func(before, now any) {
				if version(before) != version(now) { // otherwise the watch was interrupted
					changed(now)
				}
			},
			DeleteFunc: changed,
		})
	}
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return nil
}
