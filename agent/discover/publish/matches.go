package publish

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// match is what [Publisher.Publish] decided on for an Instance that it left, or made,
// as desired.
type match struct {
	configuration *v0.Configuration
	known         streams.Known
	offered       device.Device
}

// results holds the matches of the last Publish of each Configuration.
type results struct {
	mu      sync.Mutex
	matches map[types.NamespacedName]map[types.NamespacedName]match // by Configuration and Instance
}

func newResults() results {
	return results{matches: map[types.NamespacedName]map[types.NamespacedName]match{}}
}

func (r *results) set(configuration types.NamespacedName, matches map[types.NamespacedName]match) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(matches) > 0 {
		r.matches[configuration] = matches
	}
}

func (r *results) clear(configuration types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.matches, configuration)
}

func (r *results) get(configuration, instance types.NamespacedName) (match, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.matches[configuration][instance]
	return found, ok
}

// Matches reports whether the last [Publisher.Publish] would do and return the same for
// a later version of an Instance. Most changes are claims, or concern other nodes. They
// cost one comparison, and not a pass over all devices of the Configuration. It does not
// block.
func (p *Publisher) Matches(instance *v0.Instance) bool {
	configuration := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
	last, ok := p.results.get(configuration, types.NamespacedName{Namespace: instance.Namespace, Name: instance.Name})
	if !ok {
		return false
	}
	here := nodeView{node: p.node, configuration: last.configuration}
	return here.belongsTo(instance, last.known.Device) &&
		here.present(last.known.Device, instance, instance.Name).Action == Keep &&
		reflect.DeepEqual(published(last.configuration, instance, last.known), last.offered)
}
