package informers

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/controller/ownership"
)

// becameReady notifies the parents that asked before the first sync.
func (n *informer) becameReady() {
	n.all.mu.Lock()
	n.synced, n.err = true, nil
	waiting := n.takeWaiting()
	n.all.mu.Unlock()
	n.all.notifyAll(waiting)
}

// failed records why the API server does not let the controller list or watch. The
// waiting parents are notified of the first failure only.
func (n *informer) failed(_ context.Context, _ *cache.Reflector, err error) {
	n.all.mu.Lock()
	var waiting []ownership.Parent
	if !n.synced { // the reflector repairs a watch that breaks after the first sync
		n.err = err
		waiting = n.takeWaiting()
	}
	n.all.mu.Unlock()
	n.all.notifyAll(waiting)
}

// takeWaiting removes and returns the waiting parents. The caller holds the lock.
func (n *informer) takeWaiting() []ownership.Parent {
	waiting := make([]ownership.Parent, 0, len(n.waiting))
	for parent := range n.waiting {
		waiting = append(waiting, parent)
	}
	clear(n.waiting)
	return waiting
}

// notifyAll notifies parents. The caller does not hold the lock.
func (i *Informers) notifyAll(parents []ownership.Parent) {
	for _, parent := range parents {
		i.notify(parent)
	}
}

// saw compares an object with what was known of it, by the watch or by an apply,
// and notifies its parent if the difference matters.
func (n *informer) saw(before, now *Object) {
	name := now.name()
	n.all.mu.Lock()
	noted, found := n.applied[name]
	stale := found && noted.object.newer(now)
	if found && !stale {
		delete(n.applied, name)
	}
	condition := n.conditions[name]
	n.all.mu.Unlock()

	if stale {
		return // the controller has applied since
	}
	if found {
		before = noted.object
	}
	if before != nil && !now.differs(before, condition) {
		return
	}
	n.all.notify(now.Parent)
	if before != nil && before.Parent != now.Parent {
		n.all.notify(before.Parent)
	}
}

// lost notifies the parent of an object that was deleted, or that has lost the
// label that is watched.
func (n *informer) lost(deleted any) {
	if tombstone, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
		deleted = tombstone.Obj
	}
	object := deleted.(*Object)
	name := object.name()
	n.all.mu.Lock()
	if noted, found := n.applied[name]; !found || !noted.object.newer(object) {
		delete(n.applied, name)
		delete(n.conditions, name)
	}
	n.all.mu.Unlock()
	n.all.notify(object.Parent)
}

// note is the answer to an apply.
type note struct {
	object *Object
	since  time.Time
}

// note keeps the answer to an apply until the watch has caught up with it. The
// caller holds the lock.
func (n *informer) note(object *Object) {
	name := object.name()
	if seen, found := n.seen(name); found && !object.newer(seen) {
		return
	}
	n.applied[name] = note{object: object, since: time.Now()}
}

// expireNotes drops the answers that the watch has not confirmed: an object that
// was created and deleted while the watch was broken leaves no event.
func (i *Informers) expireNotes(now time.Time) {
	var parents []ownership.Parent
	i.mu.Lock()
	for _, informer := range i.watched {
		for name, noted := range informer.applied {
			if now.Sub(noted.since) >= linger {
				delete(informer.applied, name)
				parents = append(parents, noted.object.Parent)
			}
		}
	}
	i.mu.Unlock()
	i.notifyAll(parents)
}

// answered returns the object that an apply has produced if it has exactly the
// version that the watch delivers, or nil. Most events are such, and need not be
// decoded twice.
func (n *informer) answered(name types.NamespacedName, uid types.UID, version string) *Object {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	noted, found := n.applied[name]
	if !found || noted.object.ResourceVersion != version || noted.object.UID != uid {
		return nil
	}
	return noted.object
}
