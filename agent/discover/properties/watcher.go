package properties

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
)

var resources = map[kind]string{secret: "secrets", configMap: "configmaps"}

// Watcher resolves properties and watches the objects they come from. It is safe
// for concurrent use.
type Watcher struct {
	client         rest.Interface
	crossNamespace bool
	changed        func(types.NamespacedName)
	log            *slog.Logger

	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup
	// turn, of capacity 1, is taken by the follower that reads its object.
	turn chan struct{}

	mu      sync.Mutex
	objects map[reference]*watchedObject
}

// watchedObject is one watched Secret or ConfigMap.
type watchedObject struct {
	stop context.CancelFunc
	// keys are the values that are kept. They never change.
	keys keySet
	// users are the Configurations that refer to the object.
	users map[types.NamespacedName]bool
	// known is what the last attempt to read the object has found.
	known lookup
}

// NewWatcher returns a watcher with a client of the core API that calls changed, which must not block, with
// each Configuration that should be resolved again.
func NewWatcher(client rest.Interface, crossNamespace bool, changed func(types.NamespacedName), log *slog.Logger) *Watcher {
	w := &Watcher{
		client: client, crossNamespace: crossNamespace, changed: changed, log: log,
		turn: make(chan struct{}, 1), objects: map[reference]*watchedObject{},
	}
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
		object := w.objects[ref]
		switch {
		case object == nil:
			object = w.start(ref, keys, map[types.NamespacedName]bool{})
		case !object.keeps(keys): // read it again: it was reduced to other keys
			object.stop()
			maps.Copy(keys, object.keys)
			object = w.start(ref, keys, object.users)
		}
		object.users[configuration] = true
		w.objects[ref] = object
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
	defer w.mu.Unlock()
	if object := w.objects[ref]; object != nil {
		return object.known
	}
	return lookup{pending: true}
}

// keeps reports whether an object is reduced to at least some keys.
func (o *watchedObject) keeps(wanted keySet) bool {
	for key := range wanted {
		if !o.keys[key] {
			return false
		}
	}
	return true
}

// start watches some keys of an object. The caller holds mu.
func (w *Watcher) start(ref reference, keys keySet, users map[types.NamespacedName]bool) *watchedObject {
	ctx, stop := context.WithCancel(w.base)
	started := &watchedObject{stop: stop, keys: keys, users: users, known: lookup{pending: true}}
	f := &follower{
		client:   w.client,
		ref:      ref,
		selector: fields.OneTermEqualSelector("metadata.name", ref.Name).String(),
		keys:     keys,
		turn:     w.turn,
		found:    func(found lookup) { w.found(started, found) },
		log:      w.log.With("object", ref),
	}
	w.running.Go(func() { f.run(ctx) })
	return started
}

// found records what is known about an object, and notifies its users.
func (w *Watcher) found(object *watchedObject, found lookup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	object.known = found
	for user := range object.users {
		w.changed(user)
	}
}

// objectData is what is decoded of a Secret or a ConfigMap.
type objectData struct {
	Data       map[string]string `json:"data"`
	BinaryData map[string]string `json:"binaryData"`
}

// values returns the values of some keys. It copies them, so that nothing else of the
// object, which may have a megabyte, stays in memory.
func (d objectData) values(of kind, wanted keySet) map[string][]byte {
	values := map[string][]byte{}
	for key := range wanted {
		if text, found := d.Data[key]; found && of == configMap {
			values[key] = cut([]byte(text))
			continue
		}
		encoded, found := d.BinaryData[key]
		if of == secret {
			encoded, found = d.Data[key]
		}
		if value, err := base64.StdEncoding.DecodeString(encoded); found && err == nil { // the API server refuses others
			values[key] = cut(value)
		}
	}
	return values
}

// cut returns a copy of a value, with at most one byte more than is accepted.
func cut(value []byte) []byte {
	return bytes.Clone(value[:min(len(value), v0.MaxDiscoveryPropertyLength+1)])
}
