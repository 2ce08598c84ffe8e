package properties

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/metadata"
)

// Watcher resolves properties and watches the objects they come from. It is safe
// for concurrent use.
type Watcher struct {
	client         rest.Interface
	crossNamespace bool
	changed        func(types.NamespacedName)

	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	turn sync.Mutex // of the informers' lists

	mu      sync.Mutex
	objects map[reference]*watchedObject
}

// watchedObject is one watched Secret or ConfigMap. Its informer caches nothing else:
// permissions may be for this object alone.
type watchedObject struct {
	informer *informer.Informer
	stop     context.CancelFunc
	// keys are the values that are kept. They never change.
	keys keySet
	// users are the Configurations that refer to the object.
	users map[types.NamespacedName]bool
	// denied is why the object may not be read; nil if the last attempt was successful.
	denied error
	// deniedAt is since when it may not be read.
	deniedAt time.Time
}

// NewWatcher returns a watcher with a client of the core API. It calls changed, which must
// not block, with each Configuration that should be resolved again.
func NewWatcher(client rest.Interface, crossNamespace bool, changed func(types.NamespacedName)) *Watcher {
	w := &Watcher{client: client, crossNamespace: crossNamespace, changed: changed, objects: map[reference]*watchedObject{}}
	w.base, w.end = context.WithCancel(context.Background())
	return w
}

// Resolve returns a Configuration's properties. From now on, changes of the objects
// they come from are reported.
func (w *Watcher) Resolve(configuration *v0.Configuration) Resolved {
	name := cache.MetaObjectToName(configuration).AsNamespacedName()
	wanted, err := references(configuration, w.crossNamespace)
	w.use(name, wanted)
	if err != nil {
		return Resolved{Err: err}
	}
	return resolve(configuration, w.find)
}

// Drop forgets a Configuration.
func (w *Watcher) Drop(configuration types.NamespacedName) { w.use(configuration, nil) }

// Close stops all watches and waits for them.
func (w *Watcher) Close() {
	w.end()
	w.running.Wait()
}

// use sets the references of a Configuration.
func (w *Watcher) use(configuration types.NamespacedName, wanted map[reference]keySet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, keys := range wanted {
		before := w.objects[ref]
		if before != nil {
			maps.Copy(keys, before.keys)
		}
		if before == nil || len(keys) > len(before.keys) { // which was reduced to fewer keys
			w.objects[ref] = w.start(ref, keys, before)
		}
		w.objects[ref].users[configuration] = true
	}
	for ref, object := range w.objects {
		if wanted[ref] == nil {
			delete(object.users, configuration)
		}
		if len(object.users) == 0 {
			object.stop()
			delete(w.objects, ref)
		}
	}
}

// find returns what is known about an object.
func (w *Watcher) find(ref reference) lookup {
	w.mu.Lock()
	object := w.objects[ref]
	var denied error
	if object != nil {
		denied = object.denied
	}
	w.mu.Unlock() // which the informer's handler takes, too
	switch {
	case denied != nil:
		return lookup{err: denied}
	case object == nil || !object.informer.HasSynced():
		return lookup{pending: true}
	}
	for _, found := range object.informer.List() { // at most one
		return lookup{values: found.(*keptValues).values}
	}
	return lookup{}
}

// start watches some keys of an object, for the users of the watch before, if any. The
// caller holds mu.
func (w *Watcher) start(ref reference, keys keySet, before *watchedObject) *watchedObject {
	ctx, stop := context.WithCancel(w.base)
	object := &watchedObject{stop: stop, keys: keys, users: map[types.NamespacedName]bool{}}
	if before != nil {
		before.stop()
		object.users = before.users
	}
	selector := fields.OneTermEqualSelector("metadata.name", ref.Name)
	attempted := func(ctx context.Context, err error) { w.attempted(ctx, object, err) }
	events := informer.Events(func(_, _ *keptValues) { w.notify(object) }, func(*keptValues) { w.notify(object) })
	if ref.kind == secret {
		object.informer = informer.Core(w.client, "secrets", ref.Namespace, selector, &w.turn, attempted, &corev1.Secret{},
			func(s *corev1.Secret) metav1.Object { return keep(s, keys, s.Data, nil) }, events)
	} else {
		object.informer = informer.Core(w.client, "configmaps", ref.Namespace, selector, &w.turn, attempted, &corev1.ConfigMap{},
			func(c *corev1.ConfigMap) metav1.Object { return keep(c, keys, c.BinaryData, c.Data) }, events)
	}
	w.running.Go(func() { object.informer.Run(ctx) })
	w.running.Go(func() {
		select {
		case <-object.informer.Synced():
			w.notify(object) // also if the object does not exist
		case <-ctx.Done():
		}
	})
	return object
}

// maxDeniedDelay bounds how long an object that may not be read is left alone, besides the delay
// of the informer, which begins again at a second every two minutes. A permission that has not
// come soon may not come for days.
const maxDeniedDelay = 90 * time.Second

// attempted records whether an object may be read. If not, it waits as long as that has been so.
func (w *Watcher) attempted(ctx context.Context, object *watchedObject, err error) {
	// Other errors are of the connection or the API server: what is known remains.
	refused := apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err)
	w.mu.Lock()
	changed := refused != (object.denied != nil) && (refused || err == nil)
	if changed {
		object.denied, object.deniedAt = err, time.Now()
	}
	since := object.deniedAt
	w.mu.Unlock()
	if changed {
		w.notify(object)
	}
	if refused {
		backoff.Sleep(ctx, min(time.Since(since), maxDeniedDelay))
	}
}

// notify reports the users of an object.
func (w *Watcher) notify(object *watchedObject) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user := range object.users {
		w.changed(user)
	}
}

// keptValues is what is kept of a Secret or a ConfigMap.
type keptValues struct {
	metav1.ObjectMeta
	values map[string][]byte
}

// keep returns the values of some keys, which an object has as bytes or as text. It copies
// them, each with at most one byte more than is accepted, so that nothing else of the object,
// which may have a megabyte, stays in memory.
func keep(object metav1.Object, wanted keySet, data map[string][]byte, text map[string]string) *keptValues {
	kept := &keptValues{ObjectMeta: metadata.Identity(object), values: map[string][]byte{}}
	for key := range wanted {
		value, found := data[key]
		if !found {
			var written string
			written, found = text[key]
			value = []byte(written)
		}
		if found {
			kept.values[key] = bytes.Clone(value[:min(len(value), v0.MaxDiscoveryPropertyLength+1)])
		}
	}
	return kept
}
