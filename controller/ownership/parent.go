package ownership

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/templating"
)

// Parent is the Configuration or the Instance that objects are applied for. It is
// comparable.
type Parent struct {
	// Level is the list of templates that is rendered for the parent, and so
	// determines its kind.
	Level templating.Level
	types.NamespacedName
	// UID is empty if the parent is known only by the labels of an object.
	UID types.UID
}

// InstanceParent returns an Instance as a parent.
func InstanceParent(instance *v0.Instance) Parent {
	return parentOf(templating.InstanceLevel, instance)
}

// ConfigurationParent returns a Configuration as a parent.
func ConfigurationParent(configuration *v0.Configuration) Parent {
	return parentOf(templating.ConfigurationLevel, configuration)
}

func parentOf(level templating.Level, object metav1.Object) Parent {
	name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	return Parent{Level: level, NamespacedName: name, UID: object.GetUID()}
}

// Kind returns the kind of the parent.
func (p Parent) Kind() schema.GroupVersionKind {
	if p.Level == templating.ConfigurationLevel {
		return v0.ConfigurationKind
	}
	return v0.InstanceKind
}

// Resource returns the resource of the parent.
func (p Parent) Resource() schema.GroupVersionResource {
	if p.Level == templating.ConfigurationLevel {
		return v0.ConfigurationResource
	}
	return v0.InstanceResource
}

// ByName returns the parent without its UID, as the labels of its objects
// identify it.
func (p Parent) ByName() Parent {
	p.UID = ""
	return p
}

// String returns the kind and the name, as in "Instance default/camera-1".
func (p Parent) String() string { return fmt.Sprintf("%s %s", p.Kind().Kind, p.NamespacedName) }

// Collected reports whether garbage collection removes an object of a namespace, "" for
// cluster-scoped kinds, with the parent: an owner reference does not reach any other.
func (p Parent) Collected(namespace string) bool { return namespace == p.Namespace }
