// Package deviceplugin offers this node's devices to its kubelet: one resource
// akri.sh/INSTANCE per device, one id per slot.
//
// Read server.go and loop.go (the [Server] feeds package slots and carries out its
// commands), devices.go (what the discovering half and the Instances report),
// calls.go and service.go (the kubelet's calls), response.go (what a container
// gets), and observe.go (which slots containers have). Package kubelet keeps each
// resource connected.
//
// Always: a call that names an id absent from the last list is refused; each
// container request gets exactly one response; a list that shows a slot as taken
// is sent before the Allocate that failed for it is refused.
// Never: a lock held over a call; an id removed from a list before the machine of
// package slots allows it.
//
// # Shutdown
//
// When the agent stops, it sends a last list in which every slot is unhealthy, and
// then stops its servers. The kubelet gives an unhealthy id to no new container,
// as if the plugin were gone. Running containers, and containers that restart in
// place, are not affected by either (measured with kubelet 1.37). Without that
// list, however, the pods of a node whose agent is gone would show a healthy
// device indefinitely. The next start sends the ids as healthy again: an update of
// the agent changes the status of the pods twice and does not disturb them.
//
// # CDI
//
// Containers get properties, mounts and device files directly. The agent writes no
// CDI specification and therefore returns no CDI name: the container runtime
// refuses a container with a name that it cannot resolve.
package deviceplugin
