// Package observer observes which slots the containers of this node have, and
// which slots no container has any longer.
//
// No single source is sufficient evidence. The kubelet's podresources list is empty for a
// second after the kubelet starts (and for as long as the API server is down),
// omits the devices of plain init containers, and drops a force-deleted Pod whose
// container still runs. A slot therefore counts as released only if the list lacks
// it and every Pod of the node that requests the resource, and has not terminated, is
// accounted for in that list. There are two sources of the pods:
//
//   - The kubelet's Pods API (KEP-4188, on by default from Kubernetes 1.37) shows a Pod
//     until its containers have stopped, and refuses requests until the kubelet knows
//     its Pods. One list suffices, because a Pod whose ids are not listed yet is itself
//     in the list, and the Pods API does not show it: see covers in accounting.go.
//   - If the kubelet does not serve the Pods API, the Pods come from a consistent list
//     from the API server, together with two podresources lists a second apart and a
//     hold for Pods that vanished before they terminated.
//
// A Pods API whose socket is there but does not serve is given up after some attempts,
// and used again as soon as it serves.
//
// Read accounting.go (the decision, pure), pod.go, decode.go, apipods.go,
// kubeletpods.go, store.go, source.go (which source is used), health.go, then
// observer.go.
//
// Always: if in doubt, a slot stays in use. Never: a decision based on a missing
// response.
package observer
