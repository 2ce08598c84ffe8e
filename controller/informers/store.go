package informers

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/readiness"
	"akri.sh/akri/internal/metadata"
	"akri.sh/akri/templating/readywhen"
)

// store holds the objects of one resource that are the controller's. client-go's
// reflector writes into it; it notifies parents of differences that matter.
type store struct {
	log    logr.Logger
	notify func(ownership.Parent)
	// listed is called after each list, and received for each object.
	listed, received func()
	// resource is that of the objects; awaited has those that concern other parents, too.
	resource schema.GroupVersionResource
	awaited  *awaited
	// judge is the kind's standard of readiness.
	judge    func(*unstructured.Unstructured) (ready bool, reason string)
	panicked sync.Once

	mu       sync.Mutex
	seen     map[types.NamespacedName]*Object
	byParent map[ownership.Parent][]types.NamespacedName
	// applied holds the answers to applies that the watch has not caught up with.
	applied map[types.NamespacedName]appliedObject
	// delivered is the latest resource version that the watch has delivered.
	delivered string
	// conditions are the ready-when conditions of objects.
	conditions map[types.NamespacedName]*readywhen.Condition
}

// appliedObject is the answer to an apply.
type appliedObject struct {
	object *Object
	since  time.Time
}

func newStore(log logr.Logger, notify func(ownership.Parent), listed func()) *store {
	return &store{
		log:        log,
		notify:     notify,
		listed:     listed,
		received:   func() {},
		awaited:    &awaited{},
		judge:      readiness.Check,
		seen:       map[types.NamespacedName]*Object{},
		byParent:   map[ownership.Parent][]types.NamespacedName{},
		applied:    map[types.NamespacedName]appliedObject{},
		conditions: map[types.NamespacedName]*readywhen.Condition{},
	}
}

var _ cache.TransformingStore = (*store)(nil)

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error {
	now, err := s.transform(object)
	if err == nil {
		s.reached(now.(*Object).ResourceVersion)
		s.onUpdate(now.(*Object))
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error {
	deleted, err := s.transform(object)
	if err == nil {
		s.reached(deleted.(*Object).ResourceVersion)
		s.onDelete(deleted.(*Object))
	}
	return err
}

// Replace implements cache.ReflectorStore: the objects are all that exist.
func (s *store) Replace(objects []any, version string) error {
	exist := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		now, err := s.transform(object)
		if err != nil {
			return err
		}
		exist[now.(*Object).name()] = true
		s.onUpdate(now.(*Object))
	}
	s.mu.Lock()
	var gone []*Object
	for name, object := range s.seen {
		if !exist[name] {
			gone = append(gone, object)
		}
	}
	for name := range s.conditions { // those of objects that were expected only
		if _, applied := s.applied[name]; !applied && !exist[name] {
			delete(s.conditions, name)
		}
	}
	s.mu.Unlock()
	for _, object := range gone {
		s.onDelete(object)
	}
	for _, parent := range s.awaited.missing(s.resource, exist) { // what was never seen may be gone, too
		s.notify(parent)
	}
	s.mu.Lock()
	s.delivered = version // earlier than before if etcd was restored
	s.mu.Unlock()
	s.listed()
	return nil
}

// reached records that the watch has delivered an event of a resource version.
func (s *store) reached(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivered == "" || metadata.IsNewer(version, s.delivered) {
		s.delivered = version
	}
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

// Transformer implements cache.TransformingStore.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

// transform returns the [Object] of what the reflector delivers. Most of it are answers to
// applies that the store has already.
func (s *store) transform(object any) (any, error) {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		s.received()
		name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		if known := s.recentlyApplied(name, object.GetUID(), object.GetResourceVersion()); known != nil {
			return known, nil
		}
		return s.read(object), nil
	case *Object: // transformed before
		return object, nil
	}
	return nil, fmt.Errorf("watch: a list of unstructured objects contains a %T", object)
}

// read returns what is kept of an object, judged by its parent's condition.
func (s *store) read(full *unstructured.Unstructured) *Object {
	s.mu.Lock()
	condition := s.conditions[types.NamespacedName{Namespace: full.GetNamespace(), Name: full.GetName()}]
	s.mu.Unlock()
	return s.trim(full, condition)
}

// trim returns what is kept of an object, judged by a condition, which may be nil.
// An object whose content makes that panic is not ready.
func (s *store) trim(full *unstructured.Unstructured, condition *readywhen.Condition) *Object {
	object, panicked := trim(full, condition, s.judge)
	if panicked != nil {
		s.panicked.Do(func() {
			s.log.Error(fmt.Errorf("panic: %v", panicked), "Could not judge an object; further ones of its kind are not logged",
				"object", object.name())
		})
	}
	return object
}

// onUpdate records an object as the watch has delivered it. It compares the object with
// what was known of it, by the watch or by an apply, and notifies its parent if the
// difference matters.
func (s *store) onUpdate(now *Object) {
	name := now.name()
	s.mu.Lock()
	before := s.seen[name]
	applied, found := s.applied[name]
	if !now.ours {
		s.mu.Unlock()
		if before != nil || found {
			s.onDelete(now) // its labels are all that is left of it
		}
		return
	}
	latest := before
	if found {
		latest = applied.object
	}
	now = now.after(latest)
	s.set(name, before, now)
	before = latest
	stale := found && applied.object.newer(now)
	if found && !stale {
		delete(s.applied, name)
	}
	condition := s.conditions[name]
	s.mu.Unlock()
	if stale {
		return // the controller has applied since
	}
	if before != nil && !now.differs(before, condition) {
		return
	}
	s.notify(now.Parent)
	if before != nil && before.Parent != now.Parent {
		s.notify(before.Parent)
	}
}

// recordRead records the answer to a read.
func (s *store) recordRead(answer *Object, condition *readywhen.Condition) {
	latest, _ := s.latest(answer.name())
	s.record(answer.after(latest), condition)
}

// recordApplied records the answer to an apply. If the watch already has a later version
// of the object, that one is compared with the answer.
func (s *store) recordApplied(answer *Object, condition *readywhen.Condition) {
	answer.applied = answer.values
	s.record(answer, condition)
	s.mu.Lock()
	seen := s.seen[answer.name()]
	altered := false
	if seen != nil && seen.UID == answer.UID && seen.newer(answer) {
		now := *seen
		now.applied = answer.applied
		s.seen[answer.name()], altered = &now, now.altered()
	}
	s.mu.Unlock()
	if altered {
		s.notify(answer.Parent)
	}
}

// set replaces what was seen of an object. now is nil if it no longer exists. The
// caller holds the lock.
func (s *store) set(name types.NamespacedName, before, now *Object) {
	if now == nil {
		delete(s.seen, name)
	} else {
		s.seen[name] = now
	}
	if before != nil && now != nil && before.Parent == now.Parent {
		return
	}
	if before != nil {
		names := s.byParent[before.Parent]
		if index := slices.Index(names, name); index >= 0 {
			names = slices.Delete(names, index, index+1)
		}
		if s.byParent[before.Parent] = names; len(names) == 0 {
			delete(s.byParent, before.Parent)
		}
	}
	if now != nil {
		s.byParent[now.Parent] = append(s.byParent[now.Parent], name)
	}
}

// onDelete records that an object was deleted, that it lost the label that is watched,
// or that it is no longer the controller's, and notifies its parent and those that await it.
func (s *store) onDelete(object *Object) {
	name := object.name()
	s.mu.Lock()
	before := s.seen[name]
	if before != nil {
		s.set(name, before, nil)
	}
	applied, found := s.applied[name]
	if !found || !applied.object.newer(object) {
		delete(s.applied, name)
		delete(s.conditions, name)
	}
	s.mu.Unlock()
	if before == nil && found {
		before = applied.object
	}
	if before == nil {
		return
	}
	s.notify(before.Parent)
	for _, parent := range s.awaited.by(Name{s.resource, name}) {
		s.notify(parent)
	}
}

// record keeps the answer to an apply, or to a read, until the watch has caught up
// with it. If the watch is ahead of the answer, and does not have the object, then the
// object has been deleted or has lost its labels since: its parent is notified.
func (s *store) record(object *Object, condition *readywhen.Condition) {
	if s.keep(object, condition) {
		return
	}
	s.notify(object.Parent)
}

// keep is record without the notification. It reports whether the object may still exist.
func (s *store) keep(object *Object, condition *readywhen.Condition) bool {
	name := object.name()
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, found := s.seen[name]
	if !found && s.delivered != "" && !metadata.IsNewer(object.ResourceVersion, s.delivered) {
		return false
	}
	s.setCondition(name, condition)
	switch {
	case found && seen.UID == object.UID && seen.ResourceVersion == object.ResourceVersion:
		if object.ours {
			s.set(name, seen, object) // judged by another condition
		}
	case !found || object.newer(seen):
		s.applied[name] = appliedObject{object: object, since: time.Now()}
	}
	return true
}

// expectCondition sets an object's ready-when condition, if the object belongs to the parent or
// has not been observed yet.
func (s *store) expectCondition(parent ownership.Parent, name types.NamespacedName, condition *readywhen.Condition, synced bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, found := s.get(name)
	if found && object.Parent == parent.ByName() || !found && !synced {
		s.setCondition(name, condition)
	}
}

// setCondition sets an object's ready-when condition; nil removes it. The caller holds
// the lock.
func (s *store) setCondition(name types.NamespacedName, condition *readywhen.Condition) {
	if condition == nil {
		delete(s.conditions, name)
		return
	}
	s.conditions[name] = condition
}

// latest returns an object as last seen or applied.
func (s *store) latest(name types.NamespacedName) (*Object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.get(name)
}

// get is latest for a caller that holds the lock.
func (s *store) get(name types.NamespacedName) (*Object, bool) {
	seen, found := s.seen[name]
	if applied, ok := s.applied[name]; ok && (!found || applied.object.newer(seen)) {
		return applied.object, true
	}
	return seen, found
}

// ownedBy returns the objects whose labels name a parent, as last seen or applied.
func (s *store) ownedBy(parent ownership.Parent) []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.byParent[parent.ByName()]
	objects := make([]*Object, len(names))
	for i, name := range names {
		objects[i], _ = s.get(name)
	}
	return objects
}

func (s *store) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func (s *store) remembered() (applies, conditions int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.applied), len(s.conditions)
}

// expireApplied drops the answers that the watch has not confirmed: an object that
// was created and deleted while the watch was broken leaves no event.
func (s *store) expireApplied(now time.Time) {
	var parents []ownership.Parent
	s.mu.Lock()
	for name, applied := range s.applied {
		if now.Sub(applied.since) >= linger {
			delete(s.applied, name)
			parents = append(parents, applied.object.Parent)
		}
	}
	s.mu.Unlock()
	for _, parent := range parents {
		s.notify(parent)
	}
}

// recentlyApplied returns the object that an apply has produced if it has exactly the
// version that the watch delivers, or nil.
func (s *store) recentlyApplied(name types.NamespacedName, uid types.UID, version string) *Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	applied, found := s.applied[name]
	if !found || applied.object.ResourceVersion != version || applied.object.UID != uid {
		return nil
	}
	return applied.object
}
