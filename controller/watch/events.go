package watch

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/controller/ownership"
)

// ready lets those who asked too early ask again.
func (n *informer) ready() {
	n.all.mutex.Lock()
	n.synced, n.err = true, nil
	n.release()
}

// failed records why the API server does not let us list or watch. Who waits is
// told of the first failure; later ones are the same news.
func (n *informer) failed(_ context.Context, _ *cache.Reflector, err error) {
	n.all.mutex.Lock()
	if n.synced { // a watch that breaks is mended by the reflector
		n.all.mutex.Unlock()
		return
	}
	n.err = err
	n.release()
}

// release unlocks and tells who waits.
func (n *informer) release() {
	waiting := n.waiting
	n.waiting = map[ownership.Parent]bool{}
	n.all.mutex.Unlock()
	for parent := range waiting {
		n.all.notify(parent)
	}
}

// saw compares an object with what was known of it, by the watch or by our own
// apply, and wakes its parent if that matters to it.
func (n *informer) saw(before, now *Object) {
	name := types.NamespacedName{Namespace: now.Namespace, Name: now.Name}
	n.all.mutex.Lock()
	noted, found := n.applied[name]
	ahead := found && noted.object.newer(now)
	if found && !ahead {
		delete(n.applied, name)
	}
	n.all.mutex.Unlock()

	if ahead {
		return // old news: we have applied since
	}
	if found {
		before = noted.object
	}
	if before != nil && !now.differs(before) {
		return
	}
	n.all.notify(now.Parent)
	if before != nil && before.Parent != now.Parent {
		n.all.notify(before.Parent)
	}
}

// lost wakes the parent of an object that has gone, or that has lost the label
// by which we watch.
func (n *informer) lost(gone any) {
	if tombstone, missed := gone.(cache.DeletedFinalStateUnknown); missed {
		gone = tombstone.Obj
	}
	object := gone.(*Object)
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	n.all.mutex.Lock()
	if noted, found := n.applied[name]; found && !noted.object.newer(object) {
		delete(n.applied, name)
	}
	n.all.mutex.Unlock()
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
	name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	if seen, found := n.seen(name); found && !object.newer(seen) {
		return
	}
	n.applied[name] = note{object: object, since: time.Now()}
}

// doubtNotes drops the answers that the watch never confirmed: an object that
// came and went while the watch was broken leaves no event behind.
func (i *Informers) doubtNotes(now time.Time) {
	var doubtful []ownership.Parent
	i.mutex.Lock()
	for _, informer := range i.watched {
		for name, noted := range informer.applied {
			if now.Sub(noted.since) >= linger {
				delete(informer.applied, name)
				doubtful = append(doubtful, noted.object.Parent)
			}
		}
	}
	i.mutex.Unlock()
	for _, parent := range doubtful {
		i.notify(parent)
	}
}

// answered is what an apply of ours has made of an object, if that is the version
// that the watch brings: most are, and need not be looked at twice.
func (n *informer) answered(name types.NamespacedName, uid types.UID, version string) *Object {
	n.all.mutex.Lock()
	defer n.all.mutex.Unlock()
	noted, found := n.applied[name]
	if !found || noted.object.ResourceVersion != version || noted.object.UID != uid {
		return nil
	}
	return noted.object
}

func (n *informer) get(name types.NamespacedName) (*Object, bool) {
	seen, found := n.seen(name)
	if noted, applied := n.applied[name]; applied && (!found || noted.object.newer(seen)) {
		return noted.object, true
	}
	return seen, found
}

func (n *informer) seen(name types.NamespacedName) (*Object, bool) {
	object, found, err := n.shared.GetStore().GetByKey(cache.NewObjectName(name.Namespace, name.Name).String())
	if err != nil || !found {
		return nil, false
	}
	return object.(*Object), true
}
