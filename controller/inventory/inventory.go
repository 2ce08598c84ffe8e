package inventory

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// Ref is an object's identity. It has no version, because one object is served in
// several.
type Ref struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the identity as KIND NAMESPACE/NAME.
func (r Ref) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	if r.Namespace == "" {
		return kind + " " + r.Name
	}
	return kind + " " + r.Namespace + "/" + r.Name
}

// NamespacedName returns the object's namespace and name.
func (r Ref) NamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// RefOf returns the identity of an entry.
func RefOf(entry v0.ResourceStatus) Ref {
	return Ref{Group: entry.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}
}

// RefOfObject returns the reference to an object.
func RefOfObject(object *unstructured.Unstructured) Ref {
	kind := object.GroupVersionKind().GroupKind()
	return Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// KindOf returns the kind of an entry, in the version in which it was applied.
func KindOf(entry v0.ResourceStatus) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: entry.Group, Version: entry.Version, Kind: entry.Kind}
}

// Index returns entries by their identity.
func Index(entries []v0.ResourceStatus) map[Ref]v0.ResourceStatus {
	index := make(map[Ref]v0.ResourceStatus, len(entries))
	for _, entry := range entries {
		index[RefOf(entry)] = entry
	}
	return index
}

// Compare orders identities.
func (r Ref) Compare(other Ref) int {
	return cmp.Or(
		cmp.Compare(r.Group, other.Group), cmp.Compare(r.Kind, other.Kind),
		cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name),
	)
}

// Sort orders entries by template, then by identity, so that equal inventories
// are equal lists.
func Sort(entries []v0.ResourceStatus) {
	slices.SortFunc(entries, func(a, b v0.ResourceStatus) int {
		return cmp.Or(cmp.Compare(a.Template, b.Template), RefOf(a).Compare(RefOf(b)))
	})
}

// Kinds returns the distinct kinds of a list.
func Kinds(entries []v0.ResourceStatus) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, entry := range entries {
		if kind := KindOf(entry); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
