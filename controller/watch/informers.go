package watch

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating/readywhen"
)

// linger is how long a resource without users is still watched: a Configuration
// that is deleted and created anew finds its informer running.
const linger = time.Minute

// Informers watches the resources that are in use. Its methods may be called
// concurrently; Run must be running for anything to be seen.
type Informers struct {
	client  dynamic.Interface
	streams *streams
	notify  func(ownership.Parent)

	mutex    sync.Mutex
	running  context.Context // nil until Run
	watched  map[schema.GroupVersionResource]*informer
	users    map[types.NamespacedName]map[schema.GroupVersionResource]bool
	finished sync.WaitGroup
}

// NewInformers returns Informers that call notify for each parent that has to
// look again. notify must not block. Requests go through the HTTP client given.
func NewInformers(config *rest.Config, transport *http.Client, notify func(ownership.Parent)) (*Informers, error) {
	client, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("make a client for lists: %w", err)
	}
	streams, err := newStreams(config, transport)
	if err != nil {
		return nil, err
	}
	return &Informers{
		client:  client,
		streams: streams,
		notify:  notify,
		watched: map[schema.GroupVersionResource]*informer{},
		users:   map[types.NamespacedName]map[schema.GroupVersionResource]bool{},
	}, nil
}

// Run lets informers run until ctx ends, and waits for them to stop.
func (i *Informers) Run(ctx context.Context) error {
	i.mutex.Lock()
	i.running = ctx
	for _, informer := range i.watched {
		i.start(informer)
	}
	i.mutex.Unlock()

	tick := time.NewTicker(linger / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			i.finished.Wait()
			return nil
		case now := <-tick.C:
			i.stopUnused(now)
			i.doubtNotes(now)
		}
	}
}

// Use says which resources a Configuration needs from now on; an empty list
// ends its use of all.
func (i *Informers) Use(configuration types.NamespacedName, resources []schema.GroupVersionResource) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if len(resources) == 0 {
		delete(i.users, configuration)
		return
	}
	used := make(map[schema.GroupVersionResource]bool, len(resources))
	for _, resource := range resources {
		used[resource] = true
		i.ensure(resource)
	}
	i.users[configuration] = used
}

// State tells how far the watch of a resource is.
type State struct {
	// Synced: everything there is has been seen.
	Synced bool
	// Err is why it does not work, if it does not: the API server's answer to
	// the latest attempt. It is tried again without end.
	Err error
}

// Ask is the state of a resource's watch, which it starts if need be. While the
// watch is not synced, the parent is remembered and told when that changes.
//
// If there is a condition, objects are judged by it from then on: a watch that
// does not know it yet begins anew.
func (i *Informers) Ask(resource schema.GroupVersionResource, parent ownership.Parent, condition *readywhen.Condition) State {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	informer := i.ensure(resource)
	if condition != nil && !informer.judges(condition) {
		informer = i.replace(informer, condition)
	}
	if !informer.synced {
		informer.waiting[parent.ByName()] = true
	}
	return informer.state()
}

// Watched is one watch and how many objects it has seen.
type Watched struct {
	Resource schema.GroupVersionResource
	State    State
	Objects  int
}

// Report lists the watches, in no order.
func (i *Informers) Report() []Watched {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	list := make([]Watched, 0, len(i.watched))
	for resource, informer := range i.watched {
		list = append(list, Watched{Resource: resource, State: informer.state(), Objects: len(informer.shared.GetStore().ListKeys())})
	}
	return list
}

// Trim reduces an object as the watch of its resource does.
func (i *Informers) Trim(resource schema.GroupVersionResource, full *unstructured.Unstructured) *Object {
	i.mutex.Lock()
	var conditions []*readywhen.Condition
	if informer, found := i.watched[resource]; found {
		conditions = informer.conditions
	}
	i.mutex.Unlock()
	return Trim(full, conditions...)
}

func (n *informer) state() State { return State{Synced: n.synced, Err: n.err} }

// Get is an object as last seen, or as last applied if that is newer.
func (i *Informers) Get(resource schema.GroupVersionResource, name types.NamespacedName) (*Object, bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	informer, found := i.watched[resource]
	if !found {
		return nil, false
	}
	return informer.get(name)
}

// Of are the objects of a resource that carry a parent's labels.
func (i *Informers) Of(resource schema.GroupVersionResource, parent ownership.Parent) []*Object {
	i.mutex.Lock()
	informer, found := i.watched[resource]
	i.mutex.Unlock()
	if !found {
		return nil
	}
	seen, err := informer.shared.GetIndexer().ByIndex(byParent, key(parent))
	if err != nil {
		return nil // the index is there: cannot happen
	}
	objects := make([]*Object, 0, len(seen))
	for _, object := range seen {
		objects = append(objects, object.(*Object))
	}
	return objects
}

// Note tells what the API server answered to an apply, so that the next plan
// does not depend on how fast the watch is, and the watch's own news of it wakes
// nobody.
func (i *Informers) Note(resource schema.GroupVersionResource, object *Object) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if informer, found := i.watched[resource]; found {
		informer.note(object)
	}
}

// Forget ends the watches that are chosen. Who asks for such a resource again
// gets a new watch, which does not wait out the back-off of the old.
func (i *Informers) Forget(chosen func(schema.GroupVersionResource, State) bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for resource, informer := range i.watched {
		if chosen(resource, informer.state()) {
			informer.stop()
			delete(i.watched, resource)
		}
	}
}

// ensure returns the informer of a resource, started if it can be. The caller
// holds the lock.
func (i *Informers) ensure(resource schema.GroupVersionResource) *informer {
	if informer, found := i.watched[resource]; found {
		informer.unusedSince = time.Time{}
		return informer
	}
	return i.begin(resource, nil)
}

// begin makes an informer and starts it if that is possible yet. The caller
// holds the lock.
func (i *Informers) begin(resource schema.GroupVersionResource, conditions []*readywhen.Condition) *informer {
	informer := newInformer(i, resource, conditions)
	i.watched[resource] = informer
	if i.running != nil {
		i.start(informer)
	}
	return informer
}

// mostConditions bounds how many conditions, old ones included, the objects of a
// resource are judged by.
const mostConditions = 64

// replace begins the watch of a resource anew, with one condition more. The
// caller holds the lock.
func (i *Informers) replace(old *informer, condition *readywhen.Condition) *informer {
	conditions := old.conditions
	if len(conditions) >= mostConditions {
		conditions = nil // those still in use are asked for again
	}
	old.stop()
	informer := i.begin(old.resource, append(slices.Clone(conditions), condition))
	informer.waiting, old.waiting = old.waiting, informer.waiting
	return informer
}

// start runs an informer. The caller holds the lock.
func (i *Informers) start(informer *informer) {
	ctx, cancel := context.WithCancel(i.running)
	informer.cancel = cancel
	i.finished.Go(func() { informer.run(ctx) })
}

// stopUnused ends the watches that nobody has used for a while.
func (i *Informers) stopUnused(now time.Time) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	used := map[schema.GroupVersionResource]bool{}
	for _, resources := range i.users {
		maps.Copy(used, resources)
	}
	for resource, informer := range i.watched {
		switch {
		case used[resource]:
			informer.unusedSince = time.Time{}
		case informer.unusedSince.IsZero():
			informer.unusedSince = now
		case now.Sub(informer.unusedSince) >= linger:
			informer.stop()
			delete(i.watched, resource)
		}
	}
}

// informer is the watch of one resource. Its fields below shared are guarded by
// the lock of the Informers it belongs to.
type informer struct {
	all      *Informers
	resource schema.GroupVersionResource
	shared   cache.SharedIndexInformer
	// conditions judge each object; they do not change.
	conditions []*readywhen.Condition

	cancel      context.CancelFunc
	synced      bool
	err         error
	waiting     map[ownership.Parent]bool
	applied     map[types.NamespacedName]note // answers that the watch has not caught up with
	unusedSince time.Time
}

const byParent = "parent"

// key is a parent in the index of objects, which identifies it by name.
func key(parent ownership.Parent) string {
	return fmt.Sprint(int(parent.Level), " ", parent.NamespacedName)
}

func newInformer(all *Informers, resource schema.GroupVersionResource, conditions []*readywhen.Condition) *informer {
	client := all.client.Resource(resource)
	ours := v0.LabelManagedBy + "=" + v0.ManagedBy
	n := &informer{
		all:        all,
		resource:   resource,
		conditions: conditions,
		waiting:    map[ownership.Parent]bool{},
		applied:    map[types.NamespacedName]note{},
	}
	events := decoder{answered: n.answered, trim: func(full *unstructured.Unstructured) *Object { return Trim(full, conditions...) }}
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = ours
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = ours
			return all.streams.open(ctx, resource, options, events)
		},
	}
	n.shared = cache.NewSharedIndexInformer(lister, &Object{}, 0, cache.Indexers{
		byParent: func(object any) ([]string, error) {
			return []string{key(object.(*Object).Parent)}, nil
		},
	})
	// Both setters refuse only an informer that runs already.
	_ = n.shared.SetTransform(n.trim)
	_ = n.shared.SetWatchErrorHandlerWithContext(n.failed)
	return n
}

// run watches until ctx ends.
func (n *informer) run(ctx context.Context) {
	registration, err := n.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.saw(nil, object.(*Object)) },
		UpdateFunc: func(old, object any) { n.saw(old.(*Object), object.(*Object)) },
		DeleteFunc: n.lost,
	})
	if err != nil {
		return // the informer was stopped before it ran
	}
	n.all.finished.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			n.ready()
		}
	})
	n.shared.RunWithContext(ctx)
}

// judges tells whether objects are judged by a condition.
func (n *informer) judges(condition *readywhen.Condition) bool {
	return slices.ContainsFunc(n.conditions, func(known *readywhen.Condition) bool { return known.String() == condition.String() })
}

func (n *informer) stop() {
	if n.cancel != nil {
		n.cancel()
	}
}
