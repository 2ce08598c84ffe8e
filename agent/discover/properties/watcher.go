package properties

import (
	"context"
	"encoding/base64"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
)

var resources = map[kind]schema.GroupVersionResource{
	secret:    {Version: "v1", Resource: "secrets"},
	configMap: {Version: "v1", Resource: "configmaps"},
}

// Watcher resolves properties and watches the objects they come from. It is safe
// for concurrent use.
type Watcher struct {
	client         dynamic.Interface
	crossNamespace bool
	changed        func(types.NamespacedName)
	log            *slog.Logger

	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	objects map[reference]*watchedObject
}

// watchedObject is one watched Secret or ConfigMap.
type watchedObject struct {
	stop context.CancelFunc
	// users are the Configurations that refer to the object.
	users map[types.NamespacedName]bool
	// known is what the last attempt to read the object has found.
	known lookup
}

// NewWatcher returns a watcher that calls changed, which must not block, with
// each Configuration that should be resolved again.
func NewWatcher(client dynamic.Interface, crossNamespace bool, changed func(types.NamespacedName), log *slog.Logger) *Watcher {
	w := &Watcher{client: client, crossNamespace: crossNamespace, changed: changed, log: log, objects: map[reference]*watchedObject{}}
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
func (w *Watcher) use(configuration types.NamespacedName, wanted map[reference]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref := range wanted {
		if w.objects[ref] == nil {
			w.objects[ref] = w.start(ref)
		}
		w.objects[ref].users[configuration] = true
	}
	for ref, object := range w.objects {
		if !wanted[ref] {
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

// start watches an object. The caller holds mu.
func (w *Watcher) start(ref reference) *watchedObject {
	ctx, stop := context.WithCancel(w.base)
	started := &watchedObject{stop: stop, users: map[types.NamespacedName]bool{}, known: lookup{pending: true}}
	f := &follower{
		client:   w.client.Resource(resources[ref.kind]).Namespace(ref.Namespace),
		selector: fields.OneTermEqualSelector("metadata.name", ref.Name).String(),
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

// valuesOf returns the values of a Secret or a ConfigMap.
func valuesOf(whole *unstructured.Unstructured) map[string][]byte {
	values := map[string][]byte{}
	data, _, _ := unstructured.NestedStringMap(whole.Object, "data")
	binary, _, _ := unstructured.NestedStringMap(whole.Object, "binaryData")
	var encoded map[string]string
	if whole.GetKind() == string(secret) {
		encoded = data
	} else {
		encoded = binary
		for key, text := range data {
			values[key] = []byte(text)
		}
	}
	for key, text := range encoded {
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // the API server refuses such values
		}
		if _, found := values[key]; !found {
			values[key] = value
		}
	}
	return values
}
