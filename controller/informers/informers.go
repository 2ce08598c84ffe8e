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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/readywhen"
)

// linger is how long a resource without users is still watched, up to twice, so that a
// Configuration that is deleted and created again finds its informer running.
const linger = time.Minute

// Informers watches the resources that are in use. It is safe for concurrent use.
type Informers struct {
	ctx    context.Context // ends all watches
	client dynamic.Interface
	single *objects.Client // for single objects
	notify func(ownership.Parent)
	log    logr.Logger
	pace   time.Duration

	mu      sync.Mutex
	watched map[schema.GroupVersionResource]*resourceInformer
	// awaited are the objects whose deletion concerns parents that do not own them.
	awaited map[ownership.Parent][]Name
}

// New returns Informers that call notify for each parent that must be reconciled;
// the parent has no UID. notify must not block. Requests go through the HTTP client.
// They watch until ctx ends.
func New(ctx context.Context, config *rest.Config, transport *http.Client, notify func(ownership.Parent)) (*Informers, error) {
	return newInformers(ctx, config, transport, notify, pace)
}

func newInformers(
	ctx context.Context, config *rest.Config, transport *http.Client, notify func(ownership.Parent), pace time.Duration,
) (*Informers, error) {
	single, err := objects.NewClient(config, transport)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfigAndClient(config, transport)
	if err != nil {
		return nil, fmt.Errorf("create a client to watch: %w", err)
	}
	i := &Informers{
		ctx: ctx, client: client, single: single, notify: notify, log: log.Log.WithName("watch"), pace: pace,
		watched: map[schema.GroupVersionResource]*resourceInformer{},
		awaited: map[ownership.Parent][]Name{},
	}
	go wait.UntilWithContext(ctx, func(context.Context) { i.stopUnused() }, linger)
	return i, nil
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
	for _, informer := range i.watched {
		delete(informer.users, configuration)
	}
	for _, resource := range resources {
		i.informer(resource).users[configuration] = true
	}
}

// usersOf returns the Configurations that need a resource.
func (i *Informers) usersOf(informer *resourceInformer) []ownership.Parent {
	i.mu.Lock()
	defer i.mu.Unlock()
	var users []ownership.Parent
	for configuration := range informer.users {
		users = append(users, ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: configuration})
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
		return informer.state()
	}
	return State{}
}

// Ensure returns the state of the watch of a desired object's resource, and starts
// the watch if necessary. A parent that calls it while the watch has not synced, or
// fails, is notified when that changes.
func (i *Informers) Ensure(resource schema.GroupVersionResource, parent ownership.Parent) State {
	i.mu.Lock()
	informer := i.informer(resource)
	i.mu.Unlock()
	return informer.await(parent)
}

// Judge reads an object of a parent from the API server if it exists and has not
// been judged by the parent's condition: the condition is new, or the controller
// has restarted.
func (i *Informers) Judge(
	ctx context.Context,
	resource schema.GroupVersionResource, parent ownership.Parent, name types.NamespacedName, condition *readywhen.Condition,
) error {
	object, found := i.Get(resource, name)
	if condition == nil || !found || object.judgedBy(condition) || object.Parent != parent.ByName() {
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
	return live.Read(func(object *unstructured.Unstructured) { informer.record(trim(object, condition)) })
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
		list[at] = Watched{Resource: informer.resource, State: informer.state(), Objects: informer.len()}
	}
	return list
}

// Get returns an object as last seen, or as last applied or read if that is newer.
func (i *Informers) Get(resource schema.GroupVersionResource, name types.NamespacedName) (*Object, bool) {
	if informer := i.find(resource); informer != nil {
		return informer.get(name)
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

// Dependent is an object that garbage collection deletes with its owner.
type Dependent struct {
	Resource schema.GroupVersionResource
	Object   *Object
}

// Dependents returns the objects that garbage collection deletes once a parent,
// which is identified by its UID, no longer exists, and that are not being deleted
// yet.
func (i *Informers) Dependents(parent ownership.Parent) []Dependent {
	var dependents []Dependent
	known := map[types.UID]bool{} // a kind may be watched in two versions
	for _, informer := range i.all() {
		for _, object := range informer.ownedBy(parent) {
			if object.Dependent && object.Owner == parent.UID && !object.Terminating && parent.Collected(object.Namespace) && !known[object.UID] {
				known[object.UID] = true
				dependents = append(dependents, Dependent{Resource: informer.resource, Object: object})
			}
		}
	}
	return dependents
}

// RecordApplied records the API server's answer to an apply and returns what is kept of it.
// The next plan then does not depend on how fast the watch is, and the watch's
// event for it notifies no parent. The condition, which may be nil, is the parent's own
// standard of the object's readiness: the parent is notified when its verdict changes.
func (i *Informers) RecordApplied(
	resource schema.GroupVersionResource, answer *unstructured.Unstructured, condition *readywhen.Condition,
) *Object {
	object := trim(answer, condition)
	if informer := i.find(resource); informer != nil {
		informer.record(object)
	}
	return object
}

// Await sets the objects whose deletion a parent is notified of from now on, although it
// does not own them: a template of it renders them, and leaves them to their owner while they
// exist. An empty list ends that.
func (i *Informers) Await(parent ownership.Parent, names []Name) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.awaited[parent.ByName()] = names; len(names) == 0 {
		delete(i.awaited, parent.ByName())
	}
}

// Name is the name of an object of a resource.
type Name struct {
	Resource schema.GroupVersionResource
	types.NamespacedName
}

// gone notifies the parents that await the deletion of objects of a resource. There are few.
func (i *Informers) gone(resource schema.GroupVersionResource, isGone func(types.NamespacedName) bool) {
	i.mu.Lock()
	var parents []ownership.Parent
	for parent, names := range i.awaited {
		if slices.ContainsFunc(names, func(name Name) bool { return name.Resource == resource && isGone(name.NamespacedName) }) {
			parents = append(parents, parent)
		}
	}
	i.mu.Unlock()
	for _, parent := range parents {
		i.notify(parent)
	}
}

// Forget ends the watches of a resource, in all versions: those that do not work, and all of them
// if it was deleted. A parent that asks for it again gets a new watch, which finds out what is
// served now, and does not wait out the back-off of the old one.
func (i *Informers) Forget(resource schema.GroupResource, deleted bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for version, known := range i.watched {
		if version.GroupResource() == resource && (deleted || !known.state().Synced) {
			i.stop(version)
		}
	}
}

// informer returns the informer of a resource, and starts it if necessary. The caller holds
// the lock.
func (i *Informers) informer(resource schema.GroupVersionResource) *resourceInformer {
	known, found := i.watched[resource]
	if !found {
		known = newInformer(i, resource)
		i.watched[resource] = known
	}
	known.unused = false
	return known
}

// stopUnused ends the watches that have had no user since it was last called.
func (i *Informers) stopUnused() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for resource, informer := range i.watched {
		if informer.unused && len(informer.users) == 0 {
			i.stop(resource)
		}
		informer.unused = len(informer.users) == 0
	}
}

// stop ends the watch of a resource. The caller holds the lock.
func (i *Informers) stop(resource schema.GroupVersionResource) {
	i.watched[resource].cancel()
	delete(i.watched, resource)
}
