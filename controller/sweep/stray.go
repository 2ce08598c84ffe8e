package sweep

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// selector finds what the controller made and may remove.
const selector = v0.LabelManagedBy + "=" + v0.ManagedBy + "," + v0.LabelConfiguration + "," + v0.LabelDeletionPolicy + "!=" + v0.DeletionPolicyOrphan

// parent is the Configuration or Instance that an object was made for, by its
// labels. uid is empty if they do not say.
type parent struct {
	instance bool
	types.NamespacedName
	uid types.UID
}

// suspect tells for which parent an object was made, if nobody but that parent
// would remove it.
func suspect(object *metav1.PartialObjectMetadata) (parent, bool) {
	applied := slices.ContainsFunc(object.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == v0.FieldManagerController && entry.Operation == metav1.ManagedFieldsOperationApply
	})
	if !applied || len(object.OwnerReferences) > 0 || object.DeletionTimestamp != nil {
		return parent{}, false
	}
	labels := object.Labels
	found := parent{
		NamespacedName: types.NamespacedName{Namespace: object.Namespace, Name: labels[v0.LabelConfiguration]},
		uid:            types.UID(labels[v0.LabelOwner]),
	}
	if home, elsewhere := labels[v0.LabelNamespace]; elsewhere {
		found.Namespace = home
	}
	if name, ofInstance := labels[v0.LabelInstance]; ofInstance {
		found.instance, found.Name = true, name
	}
	return found, true
}
