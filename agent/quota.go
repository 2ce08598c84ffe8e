package agent

import (
	"cmp"
	"fmt"
	"math"
	"slices"

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

// fitting returns what of a namespace's load is within the limits of a namespace. The rest
// is not served, and takes nothing from others.
func (l load) fitting() load {
	return l.min(load{v0.MaxConfigurations, maxRequestsOfNamespace, maxReferencesOfNamespace})
}

// quota judges a Configuration by what others take. beyond is the cause and the remedy if
// this node does not serve it, and otherwise "". All agents with the same handlers agree.
// contended means that the node does not serve all Configurations: this one may get room, or
// has to make room for those of other namespaces.
func (c *configurations) quota(configuration *v0.Configuration) (beyond string, contended bool) {
	cached := c.cached(keyOf(configuration))
	if cached == nil || !c.counts(cached) {
		return "", false
	}
	own, namespaces := cached.request, map[string]load{}
	for _, object := range c.informer.GetStore().List() {
		other := object.(*cachedConfiguration)
		if !c.counts(other) {
			continue
		}
		namespaces[other.Namespace] = namespaces[other.Namespace].plus(other.request)
		if other.Namespace == cached.Namespace && isOlder(other, cached) {
			own = own.plus(other.request)
		}
	}
	beyond = overQuota(own, namespaces)
	return beyond, beyond != "" || exceed(namespaces)
}

// exceed reports whether namespaces together exceed what a node serves.
func exceed(namespaces map[string]load) bool {
	var all load
	for _, namespace := range namespaces {
		all = all.plus(namespace.fitting())
	}
	return all != all.min(load{maxServed, maxRequests, maxReferences})
}

// overQuota returns why a node does not serve a Configuration that takes own, together with
// the older ones of its namespace, or "". Namespaces have equal shares of a node, whatever
// the age of their Configurations, so none displaces what another one has of its share.
func overQuota(own load, namespaces map[string]load) string {
	const oldest = "the oldest are served: delete some that are not needed"
	const shares = "namespaces share these equally: delete some that are not needed"
	beyond := func(limit int, of func(load) int) bool { return of(own) > share(limit, namespaces, of) }
	count := func(l load) int { return l.count }
	bytes := func(l load) int { return l.bytes }
	references := func(l load) int { return l.references }
	switch {
	case own.count > v0.MaxConfigurations:
		return fmt.Sprintf("not served: a node serves at most %d Configurations of one namespace, and %s", v0.MaxConfigurations, oldest)
	case beyond(maxServed, count):
		return fmt.Sprintf("not served: a node serves at most %d Configurations, and %s", maxServed, shares)
	case own.bytes > maxRequestsOfNamespace:
		return fmt.Sprintf("not served: the requests of a namespace's Configurations on a node have at most %d bytes, and %s, "+
			"or shorten discoveryDetails and discoveryProperties", maxRequestsOfNamespace, oldest)
	case beyond(maxRequests, bytes):
		return fmt.Sprintf("not served: the requests of all Configurations on a node have at most %d bytes, and %s, "+
			"or shorten discoveryDetails and discoveryProperties", maxRequests, shares)
	case own.references > maxReferencesOfNamespace:
		return fmt.Sprintf("not served: a namespace's Configurations on a node refer to at most %d Secrets and ConfigMaps, and %s, "+
			"or use more keys of fewer objects", maxReferencesOfNamespace, oldest)
	case beyond(maxReferences, references):
		return fmt.Sprintf("not served: all Configurations on a node refer to at most %d Secrets and ConfigMaps, and %s, "+
			"or use more keys of fewer objects", maxReferences, shares)
	}
	return ""
}

// share returns how much of a limit each namespace may take: the most for which the
// namespaces together, each taking no more than it needs, stay within the limit.
func share(limit int, namespaces map[string]load, of func(load) int) int {
	needs := make([]int, 0, len(namespaces))
	for _, namespace := range namespaces {
		needs = append(needs, of(namespace.fitting()))
	}
	slices.Sort(needs)
	for i, need := range needs {
		if equal := limit / (len(needs) - i); need > equal {
			return equal
		}
		limit -= need
	}
	return math.MaxInt
}

// counts reports whether a Configuration would be served if there were no quota.
func (c *configurations) counts(cached *cachedConfiguration) bool {
	return v0.Active(&cached.Configuration) && c.reader.served(cached.Spec.DiscoveryHandler.Name)
}

// isOlder orders the Configurations of a namespace by age.
func isOlder(a, b *cachedConfiguration) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
