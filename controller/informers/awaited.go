package informers

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
)

// Name is the name of an object of a resource.
type Name struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
}

// awaited holds the objects whose deletion concerns parents that do not own them: a
// template of theirs renders the object, and leaves it to its owner while it exists.
type awaited struct {
	mu       sync.Mutex
	parents  map[Name]map[ownership.Parent]bool
	byParent map[ownership.Parent][]Name
}

// Await sets the objects whose deletion a parent is notified of from now on, although it
// may not own them. An empty list ends that.
func (i *Informers) Await(parent ownership.Parent, objects []Name) {
	i.awaited.set(parent.ByName(), objects)
}

func (a *awaited) set(parent ownership.Parent, objects []Name) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, object := range a.byParent[parent] {
		if delete(a.parents[object], parent); len(a.parents[object]) == 0 {
			delete(a.parents, object)
		}
	}
	if len(objects) == 0 {
		delete(a.byParent, parent)
		return
	}
	if a.parents == nil {
		a.parents, a.byParent = map[Name]map[ownership.Parent]bool{}, map[ownership.Parent][]Name{}
	}
	a.byParent[parent] = objects
	for _, object := range objects {
		if a.parents[object] == nil {
			a.parents[object] = map[ownership.Parent]bool{}
		}
		a.parents[object][parent] = true
	}
}

// by returns the parents that await the deletion of an object.
func (a *awaited) by(object Name) []ownership.Parent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.parents[object]))
}

// missing returns the parents that await the deletion of an object of a resource that is
// not among those that exist.
func (a *awaited) missing(resource schema.GroupVersionResource, exist map[types.NamespacedName]bool) []ownership.Parent {
	a.mu.Lock()
	defer a.mu.Unlock()
	var parents []ownership.Parent
	for object, waiting := range a.parents {
		if object.Resource == resource && !exist[object.NamespacedName] {
			parents = slices.AppendSeq(parents, maps.Keys(waiting))
		}
	}
	return parents
}
