package informers

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/metadata"
)

// store holds the objects of one resource that are the controller's, in the latest version
// that the watch has delivered or an apply has produced: older versions are ignored. client-go's
// reflector writes into it; it notifies parents of differences that matter.
type store struct {
	notify func(ownership.Parent)
	// gone is called when objects no longer exist, and listed after each list.
	gone   func(isGone func(types.NamespacedName) bool)
	listed func()

	mu       sync.Mutex
	objects  map[types.NamespacedName]*Object
	byParent map[ownership.Parent][]types.NamespacedName
	// delivered is the latest resource version that the watch has delivered.
	delivered string
}

func newStore(notify func(ownership.Parent), gone func(isGone func(types.NamespacedName) bool), listed func()) *store {
	return &store{
		notify: notify, gone: gone, listed: listed,
		objects:  map[types.NamespacedName]*Object{},
		byParent: map[ownership.Parent][]types.NamespacedName{},
	}
}

var _ cache.TransformingStore = (*store)(nil)

// Transformer implements cache.TransformingStore.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

// transform returns the [Object] of what the reflector delivers. Most of it are answers to
// applies that the store has already.
func (s *store) transform(delivered any) (any, error) {
	switch delivered := delivered.(type) {
	case *unstructured.Unstructured:
		known, _ := s.get(types.NamespacedName{Namespace: delivered.GetNamespace(), Name: delivered.GetName()})
		switch {
		case known == nil:
			return trim(delivered, nil), nil
		case known.UID == delivered.GetUID() && known.ResourceVersion == delivered.GetResourceVersion():
			return known, nil
		}
		return trim(delivered, known.condition), nil
	case *Object: // transformed before
		return delivered, nil
	}
	return nil, fmt.Errorf("watch: a list of unstructured objects contains a %T", delivered)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	now, err := s.transform(object)
	if err == nil {
		s.advance(now.(*Object).ResourceVersion)
		s.observe(now.(*Object))
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	deleted, err := meta.Accessor(object)
	if err == nil {
		s.advance(deleted.GetResourceVersion())
		s.remove(types.NamespacedName{Namespace: deleted.GetNamespace(), Name: deleted.GetName()}, deleted.GetResourceVersion())
	}
	return err
}

// Replace implements cache.ReflectorStore: the objects are all that exist.
func (s *store) Replace(objects []any, version string) error {
	exist := make(map[types.NamespacedName]*Object, len(objects))
	for _, object := range objects {
		now, err := s.transform(object)
		if err != nil {
			return err
		}
		exist[now.(*Object).name()] = now.(*Object)
	}
	for _, now := range exist {
		s.observe(now)
	}
	// Answers to applies that arrive from now on are older than the list, or stay. Those that have
	// arrived are compared with it.
	s.mu.Lock()
	var missing []types.NamespacedName
	for name := range s.objects {
		if exist[name] == nil {
			missing = append(missing, name)
		}
	}
	s.delivered = version
	s.mu.Unlock()
	for _, name := range missing {
		s.remove(name, version)
	}
	s.gone(func(name types.NamespacedName) bool { return exist[name] == nil }) // what was never seen may be gone, too
	s.listed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// advance records that the watch has delivered an event of a resource version.
func (s *store) advance(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivered == "" || metadata.IsNewer(version, s.delivered) {
		s.delivered = version
	}
}

// observe records an object as the watch has delivered it, compares it with what was known
// of it, and notifies its parent if the difference matters.
func (s *store) observe(now *Object) {
	name := now.name()
	if !now.ours() {
		s.remove(name, now.ResourceVersion) // if it was, its labels are all that is left of it
		return
	}
	s.mu.Lock()
	before := s.objects[name]
	if before != nil && !now.newer(before) {
		s.mu.Unlock()
		return // it is known, or the controller has applied since
	}
	s.put(name, now)
	s.mu.Unlock()
	if before != nil && !now.differs(before) {
		return
	}
	s.notify(now.Parent)
	if before != nil && before.Parent != now.Parent {
		s.notify(before.Parent)
	}
}

// remove records that an object was deleted, that it lost the label that is watched,
// or that it is no longer the controller's, and notifies its parent and those that await it.
func (s *store) remove(name types.NamespacedName, version string) {
	s.mu.Lock()
	before := s.objects[name]
	if before == nil || metadata.IsNewer(before.ResourceVersion, version) {
		s.mu.Unlock()
		return // the controller has created it again
	}
	s.put(name, nil)
	s.mu.Unlock()
	s.notify(before.Parent)
	s.gone(func(other types.NamespacedName) bool { return other == name })
}

// record stores the answer to an apply or to a read, unless the watch has a later version. If
// it is ahead of the answer and does not have the object, the object has been deleted or has
// lost its labels since.
func (s *store) record(answer *Object) {
	name := answer.name()
	s.mu.Lock()
	known := s.objects[name]
	lost := known == nil && s.delivered != "" && !metadata.IsNewer(answer.ResourceVersion, s.delivered)
	if !lost && (known == nil || !known.newer(answer)) {
		s.put(name, answer)
	}
	s.mu.Unlock()
	if lost {
		s.notify(answer.Parent)
	}
}

// put replaces what is known of an object. now is nil if it no longer exists. The
// caller holds the lock.
func (s *store) put(name types.NamespacedName, now *Object) {
	before := s.objects[name]
	if now == nil {
		delete(s.objects, name)
	} else {
		s.objects[name] = now
	}
	if before != nil && now != nil && before.Parent == now.Parent {
		return
	}
	if before != nil {
		names := slices.DeleteFunc(s.byParent[before.Parent], func(other types.NamespacedName) bool { return other == name })
		if s.byParent[before.Parent] = names; len(names) == 0 {
			delete(s.byParent, before.Parent)
		}
	}
	if now != nil {
		s.byParent[now.Parent] = append(s.byParent[now.Parent], name)
	}
}

// get returns an object in the latest version.
func (s *store) get(name types.NamespacedName) (*Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.objects[name]
	return object, found
}

// ownedBy returns the objects whose labels name a parent.
func (s *store) ownedBy(parent ownership.Parent) []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.byParent[parent.ByName()]
	objects := make([]*Object, len(names))
	for i, name := range names {
		objects[i] = s.objects[name]
	}
	return objects
}

func (s *store) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.objects)
}
