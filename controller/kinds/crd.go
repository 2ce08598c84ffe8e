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

// Watch calls [Mapper.Changed] for the CustomResourceDefinitions that a cache sees, and then a
// function, unless it is nil, with the resource that one defines, and whether one was deleted.
func (m *Mapper) Watch(ctx context.Context, informers cache.Informers, then func(resource schema.GroupResource, deleted bool)) error {
	changed := func(crd *metav1.PartialObjectMetadata, deleted bool) {
		resource, group, _ := strings.Cut(crd.Name, ".")
		m.Changed(group)
		if then != nil {
			then(schema.GroupResource{Group: group, Resource: resource}, deleted)
		}
	}
	informer, err := informers.GetInformer(ctx, CRD())
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(object any, isInInitialList bool) {
				crd, ok := object.(*metav1.PartialObjectMetadata)
				if ok && (!isInInitialList || time.Since(crd.CreationTimestamp.Time) <= settling) {
					changed(crd, false)
				}
			},
			UpdateFunc: func(before, now any) {
				former, _ := before.(*metav1.PartialObjectMetadata)
				crd, ok := now.(*metav1.PartialObjectMetadata)
				if ok && former.GetResourceVersion() != crd.ResourceVersion { // otherwise the watch was interrupted
					changed(crd, former.GetUID() != crd.UID)
				}
			},
			DeleteFunc: func(object any) {
				if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
					object = tombstone.Obj
				}
				if crd, ok := object.(*metav1.PartialObjectMetadata); ok {
					changed(crd, true)
				}
			},
		})
	}
	if err != nil {
		return fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return nil
}
