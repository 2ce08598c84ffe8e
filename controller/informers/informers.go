package informers

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/readiness"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/readywhen"
)

// linger is how long a resource without users is still watched, so that a
// Configuration that is deleted and created again finds its informer running.
const linger = time.Minute

// Informers watches the resources that are in use. It is safe for concurrent use.
// It watches nothing until Run is called.
type Informers struct {
	client  dynamic.Interface
	single  *objects.Client // for single objects
	notify  func(ownership.Parent)
	log     logr.Logger
	timing  timing
	awaited awaited

	mu       sync.Mutex
	running  context.Context // nil unless Run is running
	watched  map[schema.GroupVersionResource]*resourceInformer
	users    map[types.NamespacedName]map[schema.GroupVersionResource]bool
	finished sync.WaitGroup // counts up only under mu, and only while running is set
}

// New returns Informers that call notify for each parent that must be reconciled;
// the parent has no UID. notify must not block. Requests go through
// the HTTP client.
func New(config *rest.Config, transport *http.Client, notify func(ownership.Parent)) (*Informers, error) {
	return newInformers(config, transport, notify, defaultTiming())
}

func newInformers(config *rest.Config, transport *http.Client, notify func(ownership.Parent), t timing) (*Informers, error) {
	single, err := objects.NewClient(config, transport)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client to watch: %w", err)
	}
	return &Informers{
		client:  client,
		single:  single,
		notify:  notify,
		log:     log.Log.WithName("watch"),
		timing:  t,
		watched: map[schema.GroupVersionResource]*resourceInformer{},
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

	check, clean := time.NewTicker(i.timing.check), time.NewTicker(linger/4)
	defer check.Stop()
	defer clean.Stop()
	for {
		select {
		case <-ctx.Done():
			i.mu.Lock()
			i.running = nil // nothing starts from now on
			i.mu.Unlock()
			i.finished.Wait()
			return nil
		case now := <-check.C:
			for _, informer := range i.all() {
				informer.check(now)
			}
		case now := <-clean.C:
			i.stopUnused(now)
			i.expireApplied(now)
		}
	}
}

// all returns the informers, in no order.
func (i *Informers) all() []*resourceInformer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Values(i.watched))
}

// find returns the informer of a resource, or nil.
func (i *Informers) find(resource schema.GroupVersionResource) *resourceInformer {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.watched[resource]
}

// SetResources sets the resources that a Configuration needs from now on. An empty list
// ends its use of all.
func (i *Informers) SetResources(configuration types.NamespacedName, resources []schema.GroupVersionResource) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(resources) == 0 {
		delete(i.users, configuration)
		return
	}
	used := make(map[schema.GroupVersionResource]bool, len(resources))
	for _, resource := range resources {
		used[resource] = true
		i.informer(resource)
	}
	i.users[configuration] = used
}

// usersOf returns the Configurations that need a resource.
func (i *Informers) usersOf(resource schema.GroupVersionResource) []ownership.Parent {
	i.mu.Lock()
	defer i.mu.Unlock()
	var users []ownership.Parent
	for configuration, resources := range i.users {
		if resources[resource] {
			users = append(users, ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: configuration})
		}
	}
	return users
}

// State is the state of the watch of a resource.
type State struct {
	// Synced reports that what is known of the objects is complete and at most as old
	// as a short interruption.
	Synced bool
	// Err is why the resource cannot be watched. The informer keeps trying.
	Err error
}

// State returns the state of the watch of a resource. It is empty if the resource is
// not watched.
func (i *Informers) State(resource schema.GroupVersionResource) State {
	if informer := i.find(resource); informer != nil {
		return informer.current()
	}
	return State{}
}

// Ensure returns the state of the watch of a desired object's resource, and starts
// the watch if necessary. A parent that calls it while the watch has not synced, or
// fails, is notified when that changes.
//
// The condition, which may be nil, is the parent's own standard of the object's
// readiness: the parent is notified when the condition's verdict changes.
func (i *Informers) Ensure(
	resource schema.GroupVersionResource, parent ownership.Parent, object types.NamespacedName, condition *readywhen.Condition,
) State {
	i.mu.Lock()
	informer := i.informer(resource)
	i.mu.Unlock()
	state := informer.await(parent)
	informer.expectCondition(parent, object, condition, state.Synced)
	return state
}

// Judge reads an object of a parent from the API server if it exists and has not
// been judged by the parent's condition: the condition is new, or the controller
// has restarted.
func (i *Informers) Judge(
	ctx context.Context,
	resource schema.GroupVersionResource, parent ownership.Parent, name types.NamespacedName, condition *readywhen.Condition,
) error {
	object, found := i.Get(resource, name)
	if condition == nil || !found || object.judged(condition) || object.Parent != parent.ByName() {
		return nil
	}
	live, err := i.single.Get(ctx, resource, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil // the watch will say so
	case err != nil:
		return fmt.Errorf("read %s %s for its ready-when condition: %w", resource.GroupResource(), name, err)
	}
	informer := i.find(resource)
	if informer == nil {
		return nil
	}
	return live.Read(func(object *unstructured.Unstructured) {
		informer.recordRead(informer.trim(object, condition), condition)
	})
}

// Watched is the watch of one resource.
type Watched struct {
	Resource schema.GroupVersionResource
	State    State
	// Objects is how many of the controller's objects it has seen.
	Objects int
}

// Report returns the watches, in no order.
func (i *Informers) Report() []Watched {
	informers := i.all()
	list := make([]Watched, len(informers))
	for at, informer := range informers {
		list[at] = Watched{Resource: informer.resource, State: informer.current(), Objects: informer.len()}
	}
	return list
}

// Remembered returns how many applies the watches have not confirmed, and how many
// objects ready-when conditions judge.
func (i *Informers) Remembered() (applies, judged int) {
	for _, informer := range i.all() {
		unconfirmed, conditions := informer.remembered()
		applies, judged = applies+unconfirmed, judged+conditions
	}
	return applies, judged
}

// Get returns an object as last seen, or as last applied if that is newer.
func (i *Informers) Get(resource schema.GroupVersionResource, name types.NamespacedName) (*Object, bool) {
	if informer := i.find(resource); informer != nil {
		return informer.latest(name)
	}
	return nil, false
}

// OwnedBy returns the objects of a resource whose labels name a parent.
func (i *Informers) OwnedBy(resource schema.GroupVersionResource, parent ownership.Parent) []*Object {
	if informer := i.find(resource); informer != nil {
		return informer.ownedBy(parent)
	}
	return nil
}

// RecordApplied records the API server's answer to an apply and returns what is kept of it.
// The next plan then does not depend on how fast the watch is, and the watch's
// event for it notifies no parent. The condition is as for [Informers.Ensure].
func (i *Informers) RecordApplied(
	resource schema.GroupVersionResource, answer *unstructured.Unstructured, condition *readywhen.Condition,
) *Object {
	informer := i.find(resource)
	if informer == nil {
		object, _ := trim(answer, condition, readiness.Check)
		return object
	}
	object := informer.trim(answer, condition)
	informer.recordApplied(object, condition)
	return object
}

// Forget ends the chosen watches. A parent that asks for such a resource again
// gets a new watch, which does not wait out the back-off of the old one.
func (i *Informers) Forget(choose func(schema.GroupVersionResource, State) bool) {
	for _, informer := range i.all() {
		if !choose(informer.resource, informer.current()) {
			continue
		}
		i.mu.Lock()
		i.remove(informer)
		i.mu.Unlock()
	}
}

// Renew opens the chosen watches again, to find out whether they still work.
func (i *Informers) Renew(choose func(schema.GroupVersionResource) bool) {
	for _, informer := range i.all() {
		if choose(informer.resource) {
			informer.renew()
		}
	}
}

// informer returns the informer of a resource. The caller holds the lock.
func (i *Informers) informer(resource schema.GroupVersionResource) *resourceInformer {
	known, found := i.watched[resource]
	if !found {
		known = newInformer(i, resource)
		i.watched[resource] = known
		if i.running != nil {
			i.start(known)
		}
	}
	known.unusedSince = time.Time{}
	return known
}

// start runs an informer. The caller holds the lock.
func (i *Informers) start(informer *resourceInformer) {
	ctx, cancel := context.WithCancel(i.running)
	informer.cancel = cancel
	i.finished.Go(func() { informer.run(ctx) })
}

// remove ends the watch of a resource. The caller holds the lock.
func (i *Informers) remove(informer *resourceInformer) {
	informer.stop()
	if i.watched[informer.resource] == informer {
		delete(i.watched, informer.resource)
	}
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
			i.remove(informer)
		}
	}
}

// expireApplied drops answers to applies that working watches have not confirmed.
func (i *Informers) expireApplied(now time.Time) {
	for _, informer := range i.all() {
		if informer.current().Synced {
			informer.expireApplied(now)
		}
	}
}
