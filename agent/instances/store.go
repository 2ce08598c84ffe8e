package instances

import (
	"context"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
)

// maxAnswerAge is how long a response of the API server takes precedence over an
// older version in the watch.
const maxAnswerAge = 10 * time.Second

const byConfiguration = "configuration"

// Event is what has happened to an Instance.
type Event int

const (
	// Changed means that the node has the Instance, and that it is new or has changed, apart
	// from its status and metadata that the agent does not read.
	Changed Event = iota
	// Left means that an Instance no longer has this node's label.
	Left
	// Deleted means that an Instance no longer exists.
	Deleted
)

// Handler receives the events of a [Store], one at a time and in order. It must not block
// or call the Store.
type Handler func(Event, *v0.Instance)

// Store holds the Instances of one node. It is safe for concurrent use.
type Store struct {
	client   dynamic.NamespaceableResourceInterface
	node     string
	label    string
	log      *slog.Logger
	informer cache.SharedIndexInformer
	touched  func(configuration types.NamespacedName)
	handler  Handler
	// unresolved are the names in gone.
	unresolved workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu      sync.Mutex
	answers map[types.NamespacedName]answer
	// gone are the Instances that disappeared from the watch and were either left or
	// deleted.
	gone map[types.NamespacedName]*v0.Instance
	// departures are the latest disappearances, by UID. Responses from before are late.
	departures map[types.UID]departure
}

// answer is an Instance from a response of the API server.
type answer struct {
	instance *v0.Instance
	at       time.Time
}

// New returns the store of a node. It calls touched, which must not block, with
// the Configuration of each Instance that appears or disappears, or whose change
// concerns who publishes the node's devices (concerns.go).
func New(client dynamic.Interface, node string, touched func(configuration types.NamespacedName), log *slog.Logger) (*Store, error) {
	s := &Store{
		client: client.Resource(v0.InstanceResource), node: node, label: v0.NodeLabel(node), log: log, touched: touched,
		answers: map[types.NamespacedName]answer{},
		gone:    map[types.NamespacedName]*v0.Instance{},

		departures: map[types.UID]departure{},
	}
	s.informer = informer.Objects(s.client, s.label,
		func(object *unstructured.Unstructured) (metav1.Object, error) { return Read(object) })
	err := s.informer.AddIndexers(cache.Indexers{byConfiguration: func(object any) ([]string, error) {
		return []string{configurationOf(object.(*v0.Instance)).String()}, nil
	}})
	if err != nil {
		return nil, err
	}
	_, err = s.informer.AddEventHandler(informer.Events(func(before, now *v0.Instance) {
		if before == nil || differ(before, now) {
			s.appeared(before, now)
		}
	}, s.disappeared))
	return s, err
}

// Run watches the Instances until ctx is done, and sends their events to a handler.
func (s *Store) Run(ctx context.Context, handler Handler) {
	s.handler = handler
	s.unresolved = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minReadDelay, maxReadDelay))
	var running sync.WaitGroup
	running.Go(func() { s.informer.RunWithContext(ctx) })
	running.Go(func() { s.resolveGone(ctx) })
	<-ctx.Done()
	s.unresolved.ShutDown()
	running.Wait()
}

// HasSynced reports whether the store holds all Instances of the node.
func (s *Store) HasSynced() bool { return s.informer.HasSynced() }

// Get returns an Instance of this node, or nil. The caller must not modify it.
func (s *Store) Get(name types.NamespacedName) *v0.Instance {
	var watched *v0.Instance
	if object, exists, err := s.informer.GetStore().GetByKey(name.String()); err == nil && exists {
		watched = object.(*v0.Instance)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest(name, watched)
}

// Of returns the Instances of a Configuration. The caller must not modify them.
func (s *Store) Of(configuration types.NamespacedName) []*v0.Instance {
	objects, err := s.informer.GetIndexer().ByIndex(byConfiguration, configuration.String())
	if err != nil {
		return nil // only for an unknown index
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*v0.Instance, 0, len(objects))
	seen := map[types.NamespacedName]bool{}
	for _, object := range objects {
		name := NameOf(object.(*v0.Instance))
		seen[name] = true
		if instance := s.latest(name, object.(*v0.Instance)); instance != nil {
			all = append(all, instance)
		}
	}
	for name, kept := range s.answers {
		if seen[name] || configurationOf(kept.instance) != configuration {
			continue
		}
		if instance := s.latest(name, nil); instance != nil {
			all = append(all, instance)
		}
	}
	return all
}

// All returns the Instances of this node that the watch shows. The caller must not modify
// them.
func (s *Store) All() []*v0.Instance {
	objects := s.informer.GetStore().List()
	all := make([]*v0.Instance, len(objects))
	for i, object := range objects {
		all[i] = object.(*v0.Instance)
	}
	return all
}

// Keep records an Instance from a response of the API server until the watch shows
// that version or a later one. An Instance without this node's label is one that the
// node has left: the Store no longer returns it. A response from before the Instance
// disappeared is ignored.
func (s *Store) Keep(instance *v0.Instance) {
	name := NameOf(instance)
	s.mu.Lock()
	defer s.mu.Unlock()
	if d, found := s.departures[instance.UID]; found && d.after(instance) {
		return
	}
	kept, found := s.answers[name]
	if !found && !s.ours(instance) {
		// The watch does not show such an Instance. Read under mu: if the Instance is
		// still there, the event of its disappearance, which drops the answer, is to come.
		if _, watched, err := s.informer.GetStore().GetByKey(name.String()); err != nil || !watched {
			return
		}
	}
	if !found || !metadata.IsNewer(kept.instance.ResourceVersion, instance.ResourceVersion) {
		s.answers[name] = answer{instance, time.Now()}
	}
}

// ours reports whether an Instance has this node's label.
func (s *Store) ours(instance *v0.Instance) bool {
	_, found := instance.Labels[s.label]
	return found
}

// Forget drops what [Store.Keep] recorded of an Instance that was deleted.
func (s *Store) Forget(instance *v0.Instance) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, found := s.answers[NameOf(instance)]; found && kept.instance.UID == instance.UID {
		delete(s.answers, NameOf(instance))
	}
}

// latest returns the later version of an Instance: the watched one, which may be
// nil, or the kept one. It returns nil if the node has left it. The caller holds mu.
func (s *Store) latest(name types.NamespacedName, watched *v0.Instance) *v0.Instance {
	kept, found := s.answers[name]
	if !found {
		return watched
	}
	if time.Since(kept.at) > maxAnswerAge || watched != nil && !metadata.IsNewer(kept.instance.ResourceVersion, watched.ResourceVersion) {
		delete(s.answers, name)
		return watched
	}
	if !s.ours(kept.instance) {
		return nil
	}
	return kept.instance
}

// Read converts an Instance, reduced to the fields that the agent reads. It modifies
// its argument.
func Read(object *unstructured.Unstructured) (*v0.Instance, error) {
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	instance := &v0.Instance{}
	if err := informer.Convert(object, instance); err != nil {
		return nil, err
	}
	instance.ObjectMeta = metadata.OfInstance(instance)
	return instance, nil
}

// NameOf returns the namespace and name of an Instance.
func NameOf(instance *v0.Instance) types.NamespacedName {
	return cache.MetaObjectToName(instance).AsNamespacedName()
}

func configurationOf(instance *v0.Instance) types.NamespacedName {
	return types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
}
