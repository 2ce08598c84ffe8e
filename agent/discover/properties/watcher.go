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
	objects map[reference]*object
}

// object is one watched Secret or ConfigMap.
type object struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	// users are the Configurations that refer to the object.
	users map[types.NamespacedName]bool
	// err is the reason why the last attempt to read the object failed.
	err error
}

// values is a Secret or ConfigMap reduced to its values.
type values struct {
	metav1.ObjectMeta
	data map[string][]byte
}

// NewWatcher returns a watcher that calls changed, which must not block, with
// each Configuration that should be resolved again.
func NewWatcher(client dynamic.Interface, crossNamespace bool, changed func(types.NamespacedName), log *slog.Logger) *Watcher {
	w := &Watcher{client: client, crossNamespace: crossNamespace, changed: changed, log: log, objects: map[reference]*object{}}
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

// find returns an object from the cache.
func (w *Watcher) find(ref reference) lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	object := w.objects[ref]
	switch {
	case object == nil:
		return lookup{pending: true}
	case object.err != nil:
		return lookup{err: object.err}
	case !object.informer.HasSynced():
		return lookup{pending: true}
	}
	stored, exists, err := object.informer.GetStore().GetByKey(ref.NamespacedName.String())
	if err != nil || !exists {
		return lookup{err: err}
	}
	return lookup{values: stored.(*values).data}
}

// start watches an object. The caller holds mu.
func (w *Watcher) start(ref reference) *object {
	selector := fields.OneTermEqualSelector("metadata.name", ref.Name).String()
	inf := informer.Objects(w.client.Resource(resources[ref.kind]).Namespace(ref.Namespace),
		func(options *metav1.ListOptions) { options.FieldSelector = selector }, reduce)
	ctx, stop := context.WithCancel(w.base)
	started := &object{informer: inf, stop: stop, users: map[types.NamespacedName]bool{}}
	// Both fail only if the informer is running or has stopped.
	_ = inf.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed(ref, started, err) })
	registration, _ := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.synced(started) },
		UpdateFunc: func(any, any) { w.synced(started) },
		DeleteFunc: func(any) { w.synced(started) },
	})
	w.running.Go(func() { inf.RunWithContext(ctx) })
	w.running.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.synced(started) // even if the object does not exist
		}
	})
	return started
}

// failed records the reason why an object cannot be read. It ignores errors that do
// not concern the object: a watch that ended, an unreachable API server.
func (w *Watcher) failed(ref reference, object *object, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsNotFound(err) {
		if !errors.Is(err, io.EOF) {
			w.log.Debug("Watch interrupted", "object", ref, "err", err)
		}
		return
	}
	w.mu.Lock()
	object.err = err
	w.mu.Unlock()
	w.notifyUsers(object)
}

// synced records that the object was read.
func (w *Watcher) synced(object *object) {
	w.mu.Lock()
	object.err = nil
	w.mu.Unlock()
	w.notifyUsers(object)
}

func (w *Watcher) notifyUsers(object *object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for user := range object.users {
		w.changed(user)
	}
}

// reduce returns the values of a Secret or a ConfigMap.
func reduce(whole *unstructured.Unstructured) (metav1.Object, error) {
	reduced := &values{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: whole.GetNamespace(), Name: whole.GetName(), UID: whole.GetUID(), ResourceVersion: whole.GetResourceVersion(),
		},
		data: map[string][]byte{},
	}
	data, _, _ := unstructured.NestedStringMap(whole.Object, "data")
	binary, _, _ := unstructured.NestedStringMap(whole.Object, "binaryData")
	var encoded map[string]string
	if whole.GetKind() == string(secret) {
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
			continue // the API server refuses such values
		}
		if _, found := reduced.data[key]; !found {
			reduced.data[key] = value
		}
	}
	return reduced, nil
}
