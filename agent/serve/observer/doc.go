// Package observer observes which slots the containers of this node have, and
// which slots no container has any longer.
//
// No single source is sufficient evidence. The kubelet's podresources list is empty for a
// second after the kubelet starts (and for as long as the API server is down),
// omits the devices of plain init containers, and drops a force-deleted Pod whose
// container still runs. A slot therefore counts as released only if the list lacks
// it and every Pod of the node that requests the resource, and has not terminated, is
// accounted for in that list.
//
// The Pods come from a watch of the API server, which may be behind. Before a slot is
// released, a consistent list, read after the kubelet's, must have no Pod that the watch has
// not shown. What a container got after the observation began, the observation does not
// judge. A Pod that vanished before it terminated counts as running for some seconds more.
//
// Read accounting.go (the decision, pure), pod.go, pods.go (the Pods of the node),
// health.go, then observer.go.
//
// Always: if in doubt, a slot stays in use. Never: a decision based on a missing
// response.
package observer
