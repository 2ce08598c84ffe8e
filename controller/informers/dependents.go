package informers

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
)

// Dependent is an object that garbage collection deletes with its owner.
type Dependent struct {
	Resource schema.GroupVersionResource
	Object   *Object
}

// Dependents returns the objects that garbage collection deletes once a parent,
// which is identified by its UID, no longer exists, and that are not being deleted
// yet.
func (i *Informers) Dependents(parent ownership.Parent) []Dependent {
	var dependents []Dependent
	known := map[types.UID]bool{} // a kind may be watched in two versions
	for _, informer := range i.all() {
		for _, object := range informer.ownedBy(parent) {
			if object.goesWith(parent.UID) && parent.Collected(object.Namespace) && !known[object.UID] {
				known[object.UID] = true
				dependents = append(dependents, Dependent{Resource: informer.resource, Object: object})
			}
		}
	}
	return dependents
}

// Current returns what is now known of a dependent. It is not found if it no longer
// depends on the same owner, or is being deleted.
func (i *Informers) Current(dependent Dependent) (*Object, bool) {
	object, found := i.Get(dependent.Resource, dependent.Object.name())
	if !found || object.UID != dependent.Object.UID || !object.goesWith(dependent.Object.Owner) {
		return nil, false
	}
	return object, true
}

// goesWith reports whether garbage collection will delete the object once its owner
// no longer exists.
func (o *Object) goesWith(owner types.UID) bool {
	return o.Dependent && o.Owner == owner && !o.Terminating
}
