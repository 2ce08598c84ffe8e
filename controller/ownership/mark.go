package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v0 "akri.sh/akri/api/v0"
)

// Mark marks an object as its parent's: by an owner reference where garbage
// collection follows it, and by labels elsewhere. With orphan, the object gets no
// owner.
func Mark(parent Parent, object *unstructured.Unstructured, orphan bool) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	elsewhere := !parent.Collected(object.GetNamespace())
	if elsewhere {
		labels[v0.LabelNamespace] = parent.Namespace
	}
	switch {
	case orphan:
		labels[v0.LabelDeletionPolicy] = v0.DeletionPolicyOrphan
	case elsewhere:
		labels[v0.LabelOwner] = string(parent.UID)
	default:
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: parent.Kind().GroupVersion().String(),
			Kind:       parent.Kind().Kind,
			Name:       parent.Name,
			UID:        parent.UID,
			Controller: new(true),
		}})
		return
	}
	object.SetLabels(labels)
}
