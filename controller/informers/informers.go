package informers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating/readywhen"
)

const (
	// linger is how long a resource without users is still watched, so that a
	// Configuration that is deleted and created again finds its informer running.
	linger = time.Minute
	// contentLinger is how long contents are kept after the last ready-when
	// condition. It is longer than the back-off of a parent whose objects cannot be
	// created yet.
	contentLinger = 10 * time.Minute
)

// Informers watches the resources that are in use. It is safe for concurrent use.
// It watches nothing until Run is called.
type Informers struct {
	client  dynamic.Interface
	streams *streams
	notify  func(ownership.Parent)

	mu       sync.Mutex
	running  context.Context // nil while Run does not run
	watched  map[schema.GroupVersionResource]*informer
	users    map[types.NamespacedName]map[schema.GroupVersionResource]bool
	finished sync.WaitGroup
}

// New returns Informers that call notify for each parent that must be reconciled;
// the parent has no UID. notify must not block. Requests go through
// the HTTP client.
func New(config *rest.Config, transport *http.Client, notify func(ownership.Parent)) (*Informers, error) {
	client, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client for lists: %w", err)
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

// Run runs the informers until ctx ends, and waits for them to stop.
func (i *Informers) Run(ctx context.Context) error {
	i.mu.Lock()
	i.running = ctx
	for _, informer := range i.watched {
		i.start(informer)
	}
	i.mu.Unlock()

	tick := time.NewTicker(linger / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			i.mu.Lock()
			i.running = nil // nothing starts from now on
			i.mu.Unlock()
			i.finished.Wait()
			return nil
		case now := <-tick.C:
			i.stopUnused(now)
			i.dropContents(now)
			i.expireNotes(now)
		}
	}
}

// Use sets the resources that a Configuration needs from now on. An empty list
// ends its use of all.
func (i *Informers) Use(configuration types.NamespacedName, resources []schema.GroupVersionResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(resources) == 0 {
		delete(i.users, configuration)
		return
	}
	used := make(map[schema.GroupVersionResource]bool, len(resources))
	for _, resource := range resources {
		used[resource] = true
		i.ensure(resource, false)
	}
	i.users[configuration] = used
}

// State is the state of the watch of a resource.
type State struct {
	// Synced reports that the first list is complete.
	Synced bool
	// Err is the error of the latest list or watch before the first sync. The
	// reflector keeps retrying.
	Err error
}

// Ask returns the state of the watch of a desired object's resource, and starts
// the watch if necessary. A parent that asks before the first sync is notified
// once it has happened, or has failed.
//
// The condition, which may be nil, is the parent's own standard of the object's
// readiness: the parent is notified when the condition's verdict changes.
func (i *Informers) Ask(
	resource schema.GroupVersionResource, parent ownership.Parent, object types.NamespacedName, condition *readywhen.Condition,
) State {
	i.mu.Lock()
	defer i.mu.Unlock()
	informer := i.ensure(resource, condition != nil)
	if !informer.synced {
		informer.waiting[parent.ByName()] = true
	} else if _, found := informer.get(object); found {
		informer.judge(object, condition)
	}
	return informer.state()
}

// Watched is the watch of one resource.
type Watched struct {
	Resource schema.GroupVersionResource
	State    State
	// Objects is how many objects it has seen.
	Objects int
}

// Report returns the watches, in no order.
func (i *Informers) Report() []Watched {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := make([]Watched, 0, len(i.watched))
	for resource, informer := range i.watched {
		list = append(list, Watched{Resource: resource, State: informer.state(), Objects: len(informer.shared.GetStore().ListKeys())})
	}
	return list
}

// Get returns an object as last seen, or as last applied if that is newer.
func (i *Informers) Get(resource schema.GroupVersionResource, name types.NamespacedName) (*Object, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	informer, found := i.watched[resource]
	if !found {
		return nil, false
	}
	return informer.get(name)
}

// Of returns the objects of a resource that carry a parent's labels.
func (i *Informers) Of(resource schema.GroupVersionResource, parent ownership.Parent) []*Object {
	i.mu.Lock()
	informer, found := i.watched[resource]
	i.mu.Unlock()
	if !found {
		return nil
	}
	seen, err := informer.shared.GetIndexer().ByIndex(byParent, key(parent))
	if err != nil {
		return nil // only if the index did not exist
	}
	objects := make([]*Object, 0, len(seen))
	for _, object := range seen {
		objects = append(objects, object.(*Object))
	}
	return objects
}

// Note records the API server's answer to an apply and returns what is kept of it.
// The next plan then does not depend on how fast the watch is, and the watch's
// event for it notifies no parent. The condition is as for Ask.
func (i *Informers) Note(
	resource schema.GroupVersionResource, answer *unstructured.Unstructured, condition *readywhen.Condition,
) *Object {
	i.mu.Lock()
	informer, found := i.watched[resource]
	i.mu.Unlock()
	if !found {
		return Trim(answer)
	}
	object := informer.trim(answer) // without the lock, which every pass needs
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.watched[resource] == informer {
		informer.note(object)
		informer.judge(object.name(), condition)
	}
	return object
}

// Forget ends the chosen watches. A parent that asks for such a resource again
// gets a new watch, which does not wait out the back-off of the old one.
func (i *Informers) Forget(choose func(schema.GroupVersionResource, State) bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for resource, informer := range i.watched {
		if choose(resource, informer.state()) {
			informer.stop()
			delete(i.watched, resource)
		}
	}
}

// ensure returns the informer of a resource, which keeps contents if requested. The
// caller holds the lock.
func (i *Informers) ensure(resource schema.GroupVersionResource, content bool) *informer {
	known, found := i.watched[resource]
	switch {
	case !found:
		known = i.begin(resource, content)
	case content && !known.keepsContent:
		known = i.restart(known, true) // the contents of the objects are needed from now on
	}
	known.unusedSince = time.Time{}
	if content {
		known.contentAsked = time.Now()
	}
	return known
}

// begin creates an informer, and starts it if Run has been called. The caller holds the
// lock.
func (i *Informers) begin(resource schema.GroupVersionResource, content bool) *informer {
	informer := newInformer(i, resource, content)
	i.watched[resource] = informer
	if i.running != nil {
		i.start(informer)
	}
	return informer
}

// restart replaces an informer by one that keeps contents, or one that does not.
// Its list notifies the parents of all objects. The caller holds the lock.
func (i *Informers) restart(old *informer, content bool) *informer {
	old.stop()
	informer := i.begin(old.resource, content)
	maps.Copy(informer.waiting, old.waiting)
	return informer
}

// start runs an informer. The caller holds the lock.
func (i *Informers) start(informer *informer) {
	ctx, cancel := context.WithCancel(i.running)
	informer.cancel = cancel
	i.finished.Go(func() { informer.run(ctx) })
}

// stopUnused ends the watches that have had no user for a while.
func (i *Informers) stopUnused(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
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

// dropContents restarts the watches that keep contents which no condition has
// judged for a while.
func (i *Informers) dropContents(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, informer := range i.watched {
		if informer.keepsContent && len(informer.conditions) == 0 && now.Sub(informer.contentAsked) >= contentLinger {
			i.restart(informer, false)
		}
	}
}
