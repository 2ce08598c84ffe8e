package agent

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/metadata"
)

// maxServed is the number of Configurations that a node serves, of those whose handler it has.
// Each costs a stream to every endpoint of the handler.
const maxServed = 400

// configurations is a cache of the cluster's Configurations, reduced to the fields
// that an agent reads.
type configurations struct{ informer cache.SharedIndexInformer }

// cachedConfiguration is a Configuration, reduced to what an agent reads.
type cachedConfiguration struct {
	v0.Configuration
	// otherFailures is the number of entries in status.discoveryFailures of other nodes.
	otherFailures int
	// otherMissing is how many of them say that the handler is missing.
	otherMissing int
	// discovered means that there is an Instance, on any node.
	discovered bool
}

// full reports whether the status has no room for failures of another node.
func (c *cachedConfiguration) full() bool { return c.otherFailures >= v0.MaxDiscoveryFailures }

// newConfigurations returns a cache for a node's agent. It calls changed, which must not
// block, with each Configuration that changes, and with those in conflict with it.
func newConfigurations(client dynamic.Interface, node string, changed func(types.NamespacedName)) (*configurations, error) {
	c := &configurations{informer.Objects(client.Resource(v0.ConfigurationResource), "",
		func(object *unstructured.Unstructured) (metav1.Object, error) { return readConfiguration(object, node) })}
	if err := c.informer.AddIndexers(cache.Indexers{byResource: func(object any) ([]string, error) {
		return resources(object.(*cachedConfiguration).Name), nil
	}}); err != nil {
		return nil, err
	}
	notify := func(configuration *cachedConfiguration) {
		changed(keyOf(configuration))
		for _, other := range c.conflicting(&configuration.Configuration) {
			changed(keyOf(other))
		}
	}
	_, err := c.informer.AddEventHandler(informer.Events(func(before, now *cachedConfiguration) {
		if before == nil || differ(before, now) {
			notify(now)
		}
	}, notify))
	return c, err
}

// differ reports whether a change matters to an agent.
func differ(before, after *cachedConfiguration) bool {
	return before.Generation != after.Generation || before.full() && !after.full() ||
		before.discovered != after.discovered ||
		v0.Active(&before.Configuration) != v0.Active(&after.Configuration) ||
		!slices.Equal(before.Status.DiscoveryFailures, after.Status.DiscoveryFailures)
}

// get returns a Configuration, or nil if it does not exist or is being deleted. The
// caller must not modify it.
func (c *configurations) get(name types.NamespacedName) *cachedConfiguration {
	if object, exists, err := c.informer.GetStore().GetByKey(name.String()); err == nil && exists {
		if cached := object.(*cachedConfiguration); v0.Active(&cached.Configuration) {
			return cached
		}
	}
	return nil
}

// older returns the Configuration that is served instead, or nil: the oldest of those in
// conflict with it, if it is older. All agents, and the webhook, judge in the same way.
func (c *configurations) older(configuration *v0.Configuration) *v0.Configuration {
	if oldest := slices.MinFunc(append(c.conflicting(configuration), configuration), compareAge); oldest != configuration {
		return oldest
	}
	return nil
}

// place returns how many Configurations whose handler this node has are older than one, and
// how many there are.
func (c *configurations) place(configuration *v0.Configuration, registered func(handler string) bool) (older, all int) {
	if !registered(configuration.Spec.DiscoveryHandler.Name) {
		return 0, 0
	}
	served := map[string]bool{} // by handler
	for _, object := range c.informer.GetStore().List() {
		other := &object.(*cachedConfiguration).Configuration
		handler := other.Spec.DiscoveryHandler.Name
		if _, known := served[handler]; !known {
			served[handler] = registered(handler)
		}
		if !v0.Active(other) || !served[handler] {
			continue
		}
		all++
		if compareAge(other, configuration) < 0 {
			older++
		}
	}
	return older, all
}

// conflicting returns the Configurations in other namespaces that have a [v0.CommonResource]
// with a Configuration, and are not being deleted.
func (c *configurations) conflicting(configuration *v0.Configuration) (others []*v0.Configuration) {
	for _, name := range resources(configuration.Name) {
		found, _ := c.informer.GetIndexer().ByIndex(byResource, name) // fails only for an unknown index
		for _, object := range found {
			other := &object.(*cachedConfiguration).Configuration
			if other.Namespace != configuration.Namespace && v0.CommonResource(other.Name, configuration.Name) != "" && v0.Active(other) {
				others = append(others, other)
			}
		}
	}
	return others
}

// byResource is the index of Configurations by [resources].
const byResource = "resource"

// resources returns the names that a Configuration shares with all that have a
// [v0.CommonResource] with it: its own and, if that is one of an Instance, that of the
// Instance's Configuration.
func resources(configuration string) []string {
	if other, ok := v0.ParseInstanceName(configuration); ok {
		return []string{configuration, other}
	}
	return []string{configuration}
}

// compareAge orders Configurations, the oldest first.
func compareAge(a, b *v0.Configuration) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// readConfiguration returns a Configuration, reduced to what the agent of a node reads: every
// agent holds all Configurations of the cluster.
func readConfiguration(object *unstructured.Unstructured, node string) (*cachedConfiguration, error) {
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
		if failure.Node == node {
			return false
		}
		read.otherFailures++
		if failure.HandlerMissing() {
			read.otherMissing++
		}
		return true
	}))
	instances, _, _ := unstructured.NestedInt64(object.Object, "status", "instances")
	read.discovered = instances > 0
	return read, nil
}

func keyOf(configuration metav1.Object) types.NamespacedName {
	return cache.MetaObjectToName(configuration).AsNamespacedName()
}
