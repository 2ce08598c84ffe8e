package agent

import (
	"cmp"
	"fmt"

	"akri.sh/akri/agent/discover/properties"
	v0 "akri.sh/akri/api/v0"
)

// What an agent serves. A Configuration costs it a stream to each endpoint of the handler,
// and its request is held several times, whether or not it has devices. Each Secret and
// ConfigMap costs a watch, also if it does not exist. Of one namespace, it serves
// [v0.MaxConfigurations].
const (
	maxServed                = 400
	maxRequests              = 16 << 20 // bytes
	maxRequestsOfNamespace   = 4 << 20  // bytes
	maxReferences            = 800
	maxReferencesOfNamespace = 200
	maxCachedRequest         = 4 << 10 // bytes; a larger one is read if the Configuration is served
)

// load is what the discovery requests of a number of Configurations take.
type load struct {
	count int
	bytes int
	// references is the number of Secrets and ConfigMaps. One counts once for each
	// Configuration that refers to it.
	references int
}

// loadOf returns what a Configuration's discovery request takes, at most. Values from Secrets
// and ConfigMaps count as the largest that are accepted: all agents judge in the same way,
// before they have read any.
func loadOf(configuration *v0.Configuration) load {
	handler := configuration.Spec.DiscoveryHandler
	literal, referenced := 0, 0
	for _, property := range handler.DiscoveryProperties {
		switch {
		case property.Value != nil:
			literal += len(*property.Value)
		case property.ValueFrom != nil:
			referenced += v0.MaxDiscoveryPropertyLength
		}
	}
	return load{
		count:      1,
		bytes:      len(handler.DiscoveryDetails) + max(literal, min(literal+referenced, v0.MaxDiscoveryPropertiesLength)),
		references: properties.References(configuration),
	}
}

func (l load) plus(other load) load {
	return load{l.count + other.count, l.bytes + other.bytes, l.references + other.references}
}

func (l load) min(other load) load {
	return load{min(l.count, other.count), min(l.bytes, other.bytes), min(l.references, other.references)}
}

// beyondQuota returns the cause and the remedy if this node serves older Configurations
// instead of one, and otherwise "". All agents with the same handlers agree.
func (c *configurations) beyondQuota(configuration *v0.Configuration) string {
	cached := c.cached(keyOf(configuration))
	if cached == nil || !c.counts(cached) {
		return ""
	}
	older := map[string]load{}
	for _, object := range c.informer.GetStore().List() {
		if other := object.(*cachedConfiguration); c.counts(other) && isOlder(other, cached) {
			older[other.Namespace] = older[other.Namespace].plus(other.request)
		}
	}
	return overQuota(cached.Namespace, cached.request, older)
}

// overQuota returns what beyondQuota returns, given what the older Configurations of each
// namespace take.
func overQuota(namespace string, wanted load, older map[string]load) string {
	all := wanted
	for _, taken := range older {
		// What a namespace has beyond its limit is not served, and takes nothing from others.
		all = all.plus(taken.min(load{v0.MaxConfigurations, maxRequestsOfNamespace, maxReferencesOfNamespace}))
	}
	own := wanted.plus(older[namespace])
	const remedy = "the oldest are served: delete some that are not needed"
	switch {
	case own.count > v0.MaxConfigurations:
		return fmt.Sprintf("not served: a node serves at most %d Configurations of one namespace, and %s", v0.MaxConfigurations, remedy)
	case all.count > maxServed:
		return fmt.Sprintf("not served: a node serves at most %d Configurations, and %s", maxServed, remedy)
	case own.bytes > maxRequestsOfNamespace:
		return fmt.Sprintf("not served: the requests of a namespace's Configurations on a node have at most %d bytes, and %s, "+
			"or shorten discoveryDetails and discoveryProperties", maxRequestsOfNamespace, remedy)
	case all.bytes > maxRequests:
		return fmt.Sprintf("not served: the requests of all Configurations on a node have at most %d bytes, and %s, "+
			"or shorten discoveryDetails and discoveryProperties", maxRequests, remedy)
	case own.references > maxReferencesOfNamespace:
		return fmt.Sprintf("not served: a namespace's Configurations on a node refer to at most %d Secrets and ConfigMaps, and %s, "+
			"or use more keys of fewer objects", maxReferencesOfNamespace, remedy)
	case all.references > maxReferences:
		return fmt.Sprintf("not served: all Configurations on a node refer to at most %d Secrets and ConfigMaps, and %s, "+
			"or use more keys of fewer objects", maxReferences, remedy)
	}
	return ""
}

// counts reports whether a Configuration would be served if there were no quota.
func (c *configurations) counts(cached *cachedConfiguration) bool {
	return v0.Active(&cached.Configuration) && c.reader.served(cached.Spec.DiscoveryHandler.Name)
}

// isOlder orders Configurations by age.
func isOlder(a, b *cachedConfiguration) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name)) < 0
}
