package agent

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
)

const byName = "name"

// configurations is a cache of the cluster's Configurations, reduced to the fields
// that an agent reads.
type configurations struct {
	informer cache.SharedIndexInformer
}

// newConfigurations returns a cache that calls changed, which must not block, with
// each Configuration that changes, and with the others of the same name.
func newConfigurations(client dynamic.Interface, node string, changed func(types.NamespacedName)) (*configurations, error) {
	c := &configurations{}
	resource := client.Resource(v0.ConfigurationResource)
	c.informer = informer.Objects(resource, nil, func(object *unstructured.Unstructured) (metav1.Object, error) {
		return readConfiguration(object, node)
	})
	if err := c.informer.AddIndexers(cache.Indexers{byName: func(object any) ([]string, error) {
		return []string{object.(*v0.Configuration).Name}, nil
	}}); err != nil {
		return nil, err
	}
	notify := func(configuration *v0.Configuration) {
		changed(keyOf(configuration))
		for _, other := range c.named(configuration.Name) {
			changed(keyOf(other))
		}
	}
	_, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { notify(object.(*v0.Configuration)) },
		UpdateFunc: func(before, after any) {
			if old, now := before.(*v0.Configuration), after.(*v0.Configuration); differ(old, now) {
				notify(now)
			}
		},
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			notify(object.(*v0.Configuration))
		},
	})
	return c, err
}

// differ reports whether a change matters to an agent.
func differ(before, after *v0.Configuration) bool {
	return before.UID != after.UID || before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!slices.Equal(before.Status.DiscoveryFailures, after.Status.DiscoveryFailures)
}

// get returns a Configuration, or nil if it does not exist or is being deleted. The
// caller must not modify it.
func (c *configurations) get(name types.NamespacedName) *v0.Configuration {
	object, exists, err := c.informer.GetStore().GetByKey(name.String())
	if err != nil || !exists {
		return nil
	}
	if configuration := object.(*v0.Configuration); configuration.DeletionTimestamp.IsZero() {
		return configuration
	}
	return nil
}

// older returns the Configuration that is served instead, or nil: an older one with
// the same name in another namespace. Both would use the same resource names on the
// node.
func (c *configurations) older(configuration *v0.Configuration) *v0.Configuration {
	all := c.named(configuration.Name)
	if len(all) == 0 || all[0].UID == configuration.UID {
		return nil
	}
	return all[0]
}

// named returns the Configurations with a name that are not being deleted, oldest
// first.
func (c *configurations) named(name string) []*v0.Configuration {
	objects, err := c.informer.GetIndexer().ByIndex(byName, name)
	if err != nil {
		return nil // only for an unknown index
	}
	var all []*v0.Configuration
	for _, object := range objects {
		if configuration := object.(*v0.Configuration); configuration.DeletionTimestamp.IsZero() {
			all = append(all, configuration)
		}
	}
	slices.SortFunc(all, func(a, b *v0.Configuration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
	return all
}

// readConfiguration converts a Configuration, reduced to the fields that this node's
// agent reads.
func readConfiguration(object *unstructured.Unstructured, node string) (*v0.Configuration, error) {
	for _, field := range []string{
		"instanceBrokerResources", "configurationBrokerResources", "brokerSpec", "instanceServiceSpec", "configurationServiceSpec",
	} {
		unstructured.RemoveNestedField(object.Object, "spec", field)
	}
	unstructured.RemoveNestedField(object.Object, "status", "resources")
	unstructured.RemoveNestedField(object.Object, "status", "conditions")
	object.SetAnnotations(nil)
	object.SetLabels(nil)
	configuration := &v0.Configuration{}
	if err := informer.Convert(object, configuration); err != nil {
		return nil, err
	}
	configuration.Status = v0.ConfigurationStatus{DiscoveryFailures: slices.DeleteFunc(configuration.Status.DiscoveryFailures,
		func(failure v0.DiscoveryFailure) bool { return failure.Node != node })}
	return configuration, nil
}

func keyOf(configuration *v0.Configuration) types.NamespacedName {
	return cache.MetaObjectToName(configuration).AsNamespacedName()
}
