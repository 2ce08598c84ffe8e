package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
)

// The indexes of the Configurations.
const (
	byName = "name"
	// byParent indexes the Configurations whose names the Instances of another
	// Configuration may have, by the name of that one.
	byParent = "parent"
)

// readTimeout bounds the time for which one Configuration keeps others waiting.
const readTimeout = 10 * time.Second

// configurations is a cache of the cluster's Configurations, reduced to the fields
// that an agent reads.
type configurations struct {
	informer cache.SharedIndexInformer
	client   dynamic.NamespaceableResourceInterface
	reader   reader
	// reading, of capacity 1, is taken while a whole Configuration is read: others choose
	// what it takes to decode it.
	reading chan struct{}

	mu sync.Mutex
	// requests are the discovery requests that the cache does not have.
	requests map[types.UID]*cachedConfiguration
}

// cachedConfiguration is a Configuration, reduced to what an agent reads.
type cachedConfiguration struct {
	v0.Configuration
	// otherFailures is the number of entries in status.discoveryFailures of other nodes.
	otherFailures int
	// otherMissing is how many of them say that the handler is missing.
	otherMissing int
	// discovered means that there is an Instance, on any node.
	discovered bool
	// withoutRequest means that the discovery request is missing, because it is large, or
	// because the node did not have the handler when the Configuration was read.
	withoutRequest bool
	// request is what the discovery request takes, present or not.
	request load
}

// full reports whether the status has no room for failures of another node.
func (c *cachedConfiguration) full() bool { return c.otherFailures >= v0.MaxDiscoveryFailures }

// newConfigurations returns a cache that calls changed, which must not block, with
// each Configuration that changes, and with its rivals.
func newConfigurations(client dynamic.Interface, read reader, changed func(types.NamespacedName)) (*configurations, error) {
	c := &configurations{
		client: client.Resource(v0.ConfigurationResource), reader: read,
		reading: make(chan struct{}, 1), requests: map[types.UID]*cachedConfiguration{},
	}
	c.informer = informer.Objects(c.client, nil, func(object *unstructured.Unstructured) (metav1.Object, error) {
		return read.configuration(object)
	})
	if err := c.informer.AddIndexers(cache.Indexers{byName: func(object any) ([]string, error) {
		return []string{object.(*cachedConfiguration).Name}, nil
	}, byParent: func(object any) ([]string, error) {
		if parent, ok := v0.ParseInstanceName(object.(*cachedConfiguration).Name); ok {
			return []string{parent}, nil
		}
		return nil, nil
	}}); err != nil {
		return nil, err
	}
	notify := func(configuration *cachedConfiguration) {
		changed(keyOf(&configuration.Configuration))
		for _, other := range c.rivals(&configuration.Configuration) {
			changed(keyOf(other))
		}
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { notify(object.(*cachedConfiguration)) },
		UpdateFunc: func(before, after any) {
			old, now := before.(*cachedConfiguration), after.(*cachedConfiguration)
			if old.UID != now.UID || old.Generation != now.Generation {
				c.forget(old)
			}
			if differ(old, now) {
				notify(now)
			}
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			c.forget(object.(*cachedConfiguration))
			notify(object.(*cachedConfiguration))
		},
	})
	return c, err
}

// differ reports whether a change matters to an agent.
func differ(before, after *cachedConfiguration) bool {
	return before.UID != after.UID || before.Generation != after.Generation || before.full() && !after.full() ||
		before.discovered != after.discovered ||
		v0.Active(&before.Configuration) != v0.Active(&after.Configuration) ||
		!slices.Equal(before.Status.DiscoveryFailures, after.Status.DiscoveryFailures)
}

// get returns a Configuration, or nil if it does not exist or is being deleted. The
// caller must not modify it.
func (c *configurations) get(name types.NamespacedName) *v0.Configuration {
	if cached := c.cached(name); cached != nil && v0.Active(&cached.Configuration) {
		return &cached.Configuration
	}
	return nil
}

func (c *configurations) cached(name types.NamespacedName) *cachedConfiguration {
	object, exists, err := c.informer.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return nil
	}
	return object.(*cachedConfiguration)
}

// otherFailures returns the number of failures that other nodes report.
func (c *configurations) otherFailures(name types.NamespacedName) int {
	if cached := c.cached(name); cached != nil {
		return cached.otherFailures
	}
	return 0
}

// withRequest returns a Configuration with its discovery request, which it reads from
// the API server if it was left out of the cache.
func (c *configurations) withRequest(ctx context.Context, configuration *v0.Configuration) (*v0.Configuration, error) {
	name := keyOf(configuration)
	cached := c.cached(name)
	if cached == nil || !cached.withoutRequest {
		return configuration, nil
	}
	c.mu.Lock()
	known := c.requests[cached.UID]
	c.mu.Unlock()
	if known != nil && known.Generation == cached.Generation {
		return &known.Configuration, nil
	}
	read, err := c.read(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read Configuration %s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// If the Configuration has changed meanwhile, the event triggers another pass.
	if now := c.cached(name); now != nil && now.UID == read.UID && now.Generation == read.Generation {
		c.requests[read.UID] = read
	}
	return &read.Configuration, nil
}

// read reads a Configuration with its request from the API server, one at a time.
func (c *configurations) read(ctx context.Context, name types.NamespacedName) (*cachedConfiguration, error) {
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	// Agents may list and watch Configurations; they need no permission to get them.
	list, err := c.client.Namespace(name.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name.Name).String(),
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, errors.New("it was deleted")
	}
	return c.reader.whole(&list.Items[0])
}

// forget drops the request of a Configuration that has changed, or is not served.
func (c *configurations) forget(old *cachedConfiguration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, old.UID)
}

// older returns the Configuration that is served instead, or nil: the oldest of its
// rivals, if it is older. All agents, and the webhook, judge in the same way.
func (c *configurations) older(configuration *v0.Configuration) *v0.Configuration {
	rivals := c.rivals(configuration)
	if len(rivals) == 0 {
		return nil
	}
	if oldest := slices.MinFunc(rivals, compareAge); compareAge(oldest, configuration) < 0 {
		return oldest
	}
	return nil
}

// rivals returns the Configurations in other namespaces that have a [v0.CommonResource]
// with a Configuration, and are not being deleted: those with its name, with the name of
// the one whose Instances may have its name, and with names that its Instances may have.
func (c *configurations) rivals(configuration *v0.Configuration) []*v0.Configuration {
	objects := slices.Concat(c.indexed(byName, configuration.Name), c.indexed(byParent, configuration.Name))
	if parent, ok := v0.ParseInstanceName(configuration.Name); ok {
		objects = append(objects, c.indexed(byName, parent)...)
	}
	var rivals []*v0.Configuration
	for _, object := range objects {
		rival := &object.(*cachedConfiguration).Configuration
		if rival.Namespace != configuration.Namespace && v0.Active(rival) {
			rivals = append(rivals, rival)
		}
	}
	return rivals
}

func (c *configurations) indexed(index, name string) []any {
	objects, err := c.informer.GetIndexer().ByIndex(index, name)
	if err != nil {
		return nil // only for an unknown index
	}
	return objects
}

// compareAge orders Configurations of different namespaces, the oldest first.
func compareAge(a, b *v0.Configuration) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
}

// reader reads Configurations.
type reader struct {
	node string
	// served reports whether this node has a discovery handler.
	served func(handler string) bool
}

// configuration returns a Configuration, reduced to what this node's agent reads. Every
// agent holds all Configurations of the cluster, but only small requests, and those only
// for handlers of its own.
func (r reader) configuration(object *unstructured.Unstructured) (*cachedConfiguration, error) {
	read, err := r.whole(object)
	if err != nil {
		return nil, err
	}
	if handler := &read.Spec.DiscoveryHandler; !r.served(handler.Name) || read.request.bytes > maxCachedRequest {
		handler.DiscoveryDetails, handler.DiscoveryProperties = "", nil
		read.withoutRequest = true
	}
	return read, nil
}

// whole returns a Configuration with its request.
func (r reader) whole(object *unstructured.Unstructured) (*cachedConfiguration, error) {
	reduced := &unstructured.Unstructured{Object: map[string]any{}}
	for _, path := range [][]string{
		{"spec", "discoveryHandler"}, {"spec", "capacity"}, {"spec", "brokerProperties"}, {"status", "discoveryFailures"},
	} {
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err == nil && found {
			err = unstructured.SetNestedField(reduced.Object, value, path...)
		}
		if err != nil {
			return nil, fmt.Errorf("read Configuration %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
	}
	read := &cachedConfiguration{}
	if err := informer.Convert(reduced, &read.Configuration); err != nil {
		return nil, err
	}
	read.ObjectMeta = metadata.Identity(object)
	read.Status.DiscoveryFailures = slices.Clip(slices.DeleteFunc(read.Status.DiscoveryFailures, func(failure v0.DiscoveryFailure) bool {
		if failure.Node == r.node {
			return false
		}
		read.otherFailures++
		if failure.HandlerMissing() {
			read.otherMissing++
		}
		return true
	}))
	read.request = loadOf(&read.Configuration)
	instances, _, _ := unstructured.NestedInt64(object.Object, "status", "instances")
	read.discovered = instances > 0
	return read, nil
}

func keyOf(configuration *v0.Configuration) types.NamespacedName {
	return cache.MetaObjectToName(configuration).AsNamespacedName()
}
