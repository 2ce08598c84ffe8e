package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/templating"
)

// Parent is the Configuration or Instance that objects are made for.
type Parent struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// Want is a rendered object as it is to be applied for its parent: in the
// parent's namespace if its kind is namespaced and it names no other, marked as
// the parent's, with its digest. It takes the object's content over.
func Want(parent Parent, object templating.Object, namespaced bool) (Desired, error) {
	full := &unstructured.Unstructured{Object: object.Content}
	kind := full.GroupVersionKind()
	if namespaced && full.GetNamespace() == "" {
		full.SetNamespace(parent.Namespace)
	}
	orphan := object.Directives.DeletionPolicy == templating.DeletionOrphan
	mark(parent, full, orphan)
	canonical, err := json.Marshal(full.Object) // map keys come out sorted
	if err != nil {
		return Desired{}, fmt.Errorf("write as JSON: %w", err)
	}
	sum := sha256.Sum256(canonical)
	return Desired{
		Ref:        inventory.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: full.GetNamespace(), Name: full.GetName()},
		Version:    kind.Version,
		Template:   int32(object.Origin.Index),
		Intent:     hex.EncodeToString(sum[:8]),
		Content:    full.Object,
		Recreate:   object.Directives.OnImmutable == templating.ImmutableRecreate,
		Once:       object.Directives.Once,
		Orphan:     orphan,
		ReadyWhen:  object.Directives.ReadyWhen,
		OnConflict: object.Directives.OnConflict,
	}, nil
}

// mark says whose an object is: by an owner reference where garbage collection
// follows those, else by labels. What is to be orphaned is nobody's.
func mark(parent Parent, object *unstructured.Unstructured, orphan bool) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	elsewhere := Elsewhere(parent.Namespace, object.GetNamespace())
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
			APIVersion: parent.Kind.GroupVersion().String(),
			Kind:       parent.Kind.Kind,
			Name:       parent.Name,
			UID:        parent.UID,
			Controller: new(true),
		}})
		return
	}
	object.SetLabels(labels)
}

// Elsewhere tells whether garbage collection cannot remove an object with its
// parent: it is in another namespace, or in none.
func Elsewhere(home, namespace string) bool { return namespace != home }
