package ownership

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
	"akri.sh/akri/templating"
)

// State is what an existing object's metadata says about its owner. Anyone who may
// change an object can set a label, so a label counts only while the controller is
// the manager that has set it.
type State struct {
	UID types.UID
	// Owner is the UID of the controller owner or, if the object has none, of the
	// parent for which the controller applied it in another namespace.
	Owner types.UID
	// Dependent reports that the Owner is the object's only owner reference, so that
	// garbage collection deletes the object once the Owner no longer exists.
	Dependent bool
	// Parent is the parent that the labels name, without a UID.
	Parent Parent
	// Confirmed reports that Parent is the parent that the owner reference names or,
	// if the object has no owner, for which the controller applied it last.
	Confirmed bool
	// Named reports that the controller has set all labels that name Parent, and no other
	// client has changed them since. It is not known of an object with a controller owner.
	Named bool
	// Applied reports that the controller is a field manager of the object.
	Applied bool
	// Terminating reports that the object is being deleted.
	Terminating bool
}

// Read returns the ownership of an object, as its metadata says.
func Read(object metav1.Object) State {
	labels := object.GetLabels()
	entry := AppliedFields(object)
	state := State{
		UID:         object.GetUID(),
		Parent:      labelled(object.GetNamespace(), labels),
		Applied:     entry != nil,
		Terminating: object.GetDeletionTimestamp() != nil,
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		state.Owner = metadata.UID(owner.UID)
		state.Dependent = len(object.GetOwnerReferences()) == 1
		group, _, _ := strings.Cut(owner.APIVersion, "/")
		state.Confirmed = group == v0.Domain && owner.Kind == state.Parent.Kind().Kind && owner.Name == state.Parent.Name &&
			object.GetNamespace() == state.Parent.Namespace
		return state
	}
	ours := appliedLabels(entry, labels)
	state.Named = ours[v0.LabelConfiguration] || ours[v0.LabelInstance]
	for _, key := range []string{v0.LabelConfiguration, v0.LabelInstance, v0.LabelNamespace} {
		if _, found := labels[key]; found && !ours[key] {
			state.Named = false
		}
	}
	if ours[v0.LabelOwner] {
		state.Owner = types.UID(labels[v0.LabelOwner])
		return state
	}
	state.Confirmed = state.Named
	return state
}

// appliedLabels returns which of the labels that name a parent the controller has
// set.
func appliedLabels(entry *metav1.ManagedFieldsEntry, labels map[string]string) map[string]bool {
	if entry == nil || entry.FieldsV1 == nil {
		return nil
	}
	var fields fieldpath.Set
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil
	}
	applied := map[string]bool{}
	for _, key := range []string{v0.LabelOwner, v0.LabelConfiguration, v0.LabelInstance, v0.LabelNamespace} {
		_, found := labels[key]
		applied[key] = found && fields.Has(fieldpath.MakePathOrDie("metadata", "labels", key))
	}
	return applied
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
	index := slices.IndexFunc(entries, IsApplied)
	if index < 0 {
		return nil
	}
	return &entries[index]
}

// IsApplied reports whether an entry in an object's managedFields is the controller's.
func IsApplied(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == v0.FieldManagerController && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}
