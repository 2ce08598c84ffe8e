package takeover

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/metadata"
)

// managerSuffix follows the node in the field manager with which an agent of Akri applies
// its finalizer (Akri: shared/src/k8s/api.rs).
const managerSuffix = "-fin"

// mayHaveFinalizer reports whether an object has a finalizer that can be one of Akri.
func mayHaveFinalizer(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetFinalizers(), metadata.IsOfNode)
}

// finalizersOfAkri returns the finalizers that agents of Akri have applied.
func finalizersOfAkri(object metav1.Object) []string {
	var found []string
	for _, finalizer := range object.GetFinalizers() {
		path := fieldpath.MakePathOrDie("metadata", "finalizers", value.NewValueInterface(finalizer))
		if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == finalizer+managerSuffix && entry.Operation == metav1.ManagedFieldsOperationApply && has(entry, path)
		}) {
			found = append(found, finalizer)
		}
	}
	return found
}

func has(entry metav1.ManagedFieldsEntry, path fieldpath.Path) bool {
	var fields fieldpath.Set
	if entry.FieldsV1 == nil || fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())) != nil {
		return false
	}
	return fields.Has(path)
}

// removeFinalizers removes the finalizers of an object that are Akri's. It leaves those of
// other clients.
func (c clients) removeFinalizers(ctx context.Context, object client.Object) error {
	if err := c.api.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return client.IgnoreNotFound(err)
	}
	found := finalizersOfAkri(object)
	if len(found) == 0 {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return slices.Contains(found, finalizer)
	})
	patch := jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", object.GetUID()),
		jsonpatch.Test("/metadata/resourceVersion", object.GetResourceVersion()),
		jsonpatch.Replace("/metadata/finalizers", left),
	}
	err := c.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch.Encode()), client.FieldOwner(v0.FieldManagerController))
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizers %q of Akri from %s: %w", found, object.GetName(), err))
	}
	log.FromContext(ctx).Info("Removed finalizers of the original Akri", "finalizers", found)
	return nil
}
