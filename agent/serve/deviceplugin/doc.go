// Package deviceplugin offers this node's devices to its kubelet: one resource
// akri.sh/INSTANCE per device, with one ID per slot, and one resource
// akri.sh/CONFIGURATION for all devices of a Configuration, with plain numbers.
//
// Read server.go and loop.go (the [Server] feeds package slots and carries out its
// commands), devices.go (what the discovering half and the Instances report),
// resources.go, calls.go and service.go (the kubelet's calls), response.go and
// environment.go (what a container gets), patch.go (claims and releases),
// observe.go (which IDs containers have), and allocations.go (when not to look). Package kubelet keeps each resource
// connected.
//
// Always: a call that names an ID absent from the last list is refused; each
// container request gets exactly one response; a list that shows an ID as taken is
// sent before the Allocate that failed for it is refused; of two resources with one
// name, the first is offered and an Event reports the second.
// Never: a lock held over a call; an ID removed from a list before the machine of
// package slots allows it.
//
// # Shutdown
//
// When the agent stops, it sends a last list in which every ID is unhealthy, and
// then stops its servers. The kubelet gives an unhealthy id to no new container,
// as if the plugin were gone. Running containers, and containers that restart in
// place, are not affected by either (measured with kubelet 1.37). Without that
// list, however, the Pods of a node whose agent is gone would show a healthy
// device indefinitely. The next start sends the ids as healthy again: an update of
// the agent changes the status of the Pods twice and does not disturb them.
//
// # CDI
//
// Containers get properties, mounts and device files directly. The agent writes no
// CDI specification and therefore returns no CDI name: the container runtime
// refuses a container with a name that it cannot resolve.
package deviceplugin
