package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/agent/discover/registry"
)

// debugSource returns what the debug endpoint shows of the parts.
func (a *parts) debugSource(options Options) debug.Source {
	source := debug.Source{
		Node: options.NodeName, Ready: a.ready, Recent: options.Recent,
		Handlers: a.debugHandlers, Configurations: a.debugConfigurations, Kubernetes: a.debugKubernetes,
	}
	if server, ok := a.server.(interface {
		DebugSlots(context.Context) (debug.Slots, error)
	}); ok {
		source.Slots = server.DebugSlots
	}
	return source
}

func (a *parts) debugKubernetes() debug.Kubernetes {
	source := ""
	if server, ok := a.server.(interface{ PodsSource() string }); ok {
		source = server.PodsSource()
	}
	return a.apiServer.debug(source)
}

func (a *parts) debugHandlers() []debug.Handler {
	var all []debug.Handler
	for _, status := range a.handlers.Snapshot() {
		handler := debug.Handler{
			Name: status.Name, Endpoint: status.Address, Shared: status.Shared, State: string(status.State), Streams: status.Streams,
		}
		if status.State == registry.Offline {
			handler.OfflineSince = &status.OfflineSince
		}
		all = append(all, handler)
	}
	return all
}

// debugConfigurations returns the Configurations whose handler has an endpoint on this
// node, sorted.
func (a *parts) debugConfigurations() []debug.Configuration {
	instances := a.instances.Count()
	var all []debug.Configuration
	for _, object := range a.configurations.informer.GetStore().List() {
		configuration := &object.(*cachedConfiguration).Configuration
		name := keyOf(configuration)
		if len(a.handlers.Endpoints(configuration.Spec.DiscoveryHandler.Name)) == 0 {
			continue
		}
		served := debug.Configuration{
			Namespace: name.Namespace, Name: name.Name, Handler: configuration.Spec.DiscoveryHandler.Name,
		}
		for count := range maps.Values(instances[name]) {
			served.Instances += count
		}
		snapshot := a.streams.Snapshot(name)
		for _, device := range snapshot.Devices {
			served.Devices++
			if device.Online {
				served.Online++
			}
		}
		for _, failure := range snapshot.Failures {
			served.Failures = append(served.Failures, failure.Endpoint.String()+": "+failure.Message)
		}
		all = append(all, served)
	}
	slices.SortFunc(all, func(a, b debug.Configuration) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}
