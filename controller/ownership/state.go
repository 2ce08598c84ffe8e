package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// State is what an existing object's metadata says about its owner.
type State struct {
	UID types.UID
	// Owner is the UID of the controller owner or, if the object has none, of the
	// parent that applied it in another namespace.
	Owner types.UID
	// Parent is the parent that the labels name, without a UID.
	Parent Parent
	// Applied reports that the controller is a field manager of the object.
	Applied bool
	// Terminating reports that the object is being deleted.
	Terminating bool
}

// Of reads the state of an object.
func Of(object metav1.Object) State {
	labels := object.GetLabels()
	state := State{
		UID:         object.GetUID(),
		Owner:       types.UID(labels[v0.LabelOwner]),
		Parent:      labelled(object.GetNamespace(), labels),
		Applied:     AppliedFields(object) != nil,
		Terminating: object.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		state.Owner = owner.UID
	}
	return state
}

// labelled returns the parent that an object's labels name.
func labelled(namespace string, labels map[string]string) Parent {
	parent := Parent{
		Level:          templating.ConfigurationLevel,
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: labels[v0.LabelConfiguration]},
	}
	if home, found := labels[v0.LabelNamespace]; found {
		parent.Namespace = home
	}
	if instance, found := labels[v0.LabelInstance]; found {
		parent.Level, parent.Name = templating.InstanceLevel, instance
	}
	return parent
}

// AppliedFields returns the controller's entry in an object's managedFields, or
// nil if the controller has not applied the object.
func AppliedFields(object metav1.Object) *metav1.ManagedFieldsEntry {
	entries := object.GetManagedFields()
	index := slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v0.FieldManagerController &&
			entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
	if index < 0 {
		return nil
	}
	return &entries[index]
}

// Suspect reports whether an object was applied by the controller and is owned by
// nothing, so that only its parent would remove it.
func Suspect(object metav1.Object) bool {
	return AppliedFields(object) != nil && len(object.GetOwnerReferences()) == 0 && object.GetDeletionTimestamp() == nil
}
