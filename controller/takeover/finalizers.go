package takeover

import (
	"bytes"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

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

// finalizerRemoval returns the patch that removes finalizers from an object as read.
func finalizerRemoval(object metav1.Object, finalizers []string) jsonpatch.Patch {
	left := slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(finalizer string) bool {
		return slices.Contains(finalizers, finalizer)
	})
	return jsonpatch.Patch{
		jsonpatch.Test("/metadata/uid", object.GetUID()),
		jsonpatch.Test("/metadata/resourceVersion", object.GetResourceVersion()),
		jsonpatch.Replace("/metadata/finalizers", left),
	}
}
