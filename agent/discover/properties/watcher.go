package properties

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
)

var resources = map[Kind]schema.GroupVersionResource{
	Secret:    {Version: "v1", Resource: "secrets"},
	ConfigMap: {Version: "v1", Resource: "configmaps"},
}

// Watcher resolves properties and watches what they come from. It is safe for
// concurrent use.
type Watcher struct {
	client         dynamic.Interface
	crossNamespace bool
	changed        func(types.NamespacedName)
	log            *slog.Logger

	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	objects map[Reference]*object
}

// object is one watched Secret or ConfigMap.
type object struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// users are the Configurations that refer to it.
	users map[types.NamespacedName]bool
	// err is why the last attempt to read it failed.
	err error
}

// values is an object reduced to what is read of it.
type values struct {
	metav1.ObjectMeta
	data map[string][]byte
}

// NewWatcher returns a watcher that calls changed, which must not block, with
// each Configuration that should be resolved again.
func NewWatcher(client dynamic.Interface, crossNamespace bool, changed func(types.NamespacedName), log *slog.Logger) *Watcher {
	w := &Watcher{client: client, crossNamespace: crossNamespace, changed: changed, log: log, objects: map[Reference]*object{}}
	w.base, w.end = context.WithCancel(context.Background())
	return w
}

// Resolve reads a Configuration's properties and has it told of changes from
// now on.
func (w *Watcher) Resolve(configuration *v0.Configuration) Resolved {
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	wanted, err := references(configuration, w.crossNamespace)
	w.use(name, wanted)
	if err != nil {
		return Resolved{Err: err}
	}
	return resolve(configuration, w.find)
}

// Drop forgets a Configuration.
func (w *Watcher) Drop(configuration types.NamespacedName) { w.use(configuration, nil) }

// Close ends all watches and waits for them.
func (w *Watcher) Close() {
	w.end()
	w.running.Wait()
}

// use makes a Configuration the user of exactly these references.
func (w *Watcher) use(configuration types.NamespacedName, wanted map[Reference]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for reference := range wanted {
		if w.objects[reference] == nil {
			w.objects[reference] = w.start(reference)
		}
		w.objects[reference].users[configuration] = true
	}
	for reference, object := range w.objects {
		if !wanted[reference] {
			delete(object.users, configuration)
		}
		if len(object.users) == 0 {
			object.stop()
			delete(w.objects, reference)
		}
	}
}

func (w *Watcher) find(reference Reference) Found {
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.objects[reference]
	switch {
	case object == nil:
		return Found{Pending: true}
	case object.err != nil:
		return Found{Err: object.err}
	case !object.informer.HasSynced():
		return Found{Pending: true}
	}
	stored, exists, err := object.informer.GetStore().GetByKey(reference.NamespacedName.String())
	if err != nil || !exists {
		return Found{Err: err}
	}
	return Found{Values: stored.(*values).data}
}

// start watches an object; the lock is held.
func (w *Watcher) start(reference Reference) *object {
	selector := fields.OneTermEqualSelector("metadata.name", reference.Name).String()
	informer := informer.Objects(w.client.Resource(resources[reference.Kind]).Namespace(reference.Namespace),
		func(options *metav1.ListOptions) { options.FieldSelector = selector }, reduce)
	ctx, stop := context.WithCancel(w.base)
	started := &object{informer: informer, stop: stop, users: map[types.NamespacedName]bool{}}
	// Both fail only on an informer that runs or has ended.
	_ = informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed(reference, started, err) })
	registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.tell(started) },
		UpdateFunc: func(any, any) { w.tell(started) },
		DeleteFunc: func(any) { w.tell(started) },
	})
	w.running.Go(func() { informer.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.tell(started) // even if there is no such object
		}
	})
	return started
}

// failed notes why an object cannot be read. An end of the watch, or an API
// server that is away, says nothing of the object.
func (w *Watcher) failed(reference Reference, object *object, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) {
		if !errors.Is(err, io.EOF) {
			w.log.Debug("watch interrupted", "object", reference, "err", err)
		}
		return
	}
	w.mu.Lock()
	object.err = err
	w.mu.Unlock()
	w.tellUsers(object)
}

// tell: the object was read, whatever it says.
func (w *Watcher) tell(object *object) {
	w.mu.Lock()
	object.err = nil
	w.mu.Unlock()
	w.tellUsers(object)
}

func (w *Watcher) tellUsers(object *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user := range object.users {
		w.changed(user)
	}
}

// reduce takes the values of a Secret or a ConfigMap.
func reduce(whole *unstructured.Unstructured) (metav1.Object, error) {
	reduced := &values{
		ObjectMeta: metav1.ObjectMeta{Namespace: whole.GetNamespace(), Name: whole.GetName(), UID: whole.GetUID(), ResourceVersion: whole.GetResourceVersion()},
		data:       map[string][]byte{},
	}
	data, _, _ := unstructured.NestedStringMap(whole.Object, "data")
	binary, _, _ := unstructured.NestedStringMap(whole.Object, "binaryData")
	var encoded map[string]string
	if whole.GetKind() == string(Secret) {
		encoded = data
	} else {
		encoded = binary
		for key, text := range data {
			reduced.data[key] = []byte(text)
		}
	}
	for key, text := range encoded {
		value, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			continue // the API server lets none in
		}
		if _, found := reduced.data[key]; !found {
			reduced.data[key] = value
		}
	}
	return reduced, nil
}
