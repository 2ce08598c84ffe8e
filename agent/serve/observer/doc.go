// Package observer observes which slots the containers of this node have, and
// which slots no container has any longer.
//
// No single source is sufficient evidence. The kubelet's podresources list is empty for a
// second after the kubelet starts (and for as long as the API server is down),
// omits the devices of plain init containers, and drops a force-deleted pod whose
// container still runs. A slot therefore counts as ended only if the list lacks
// it and every pod of the node that requests the resource, and has not ended, is
// accounted for in that list. There are two sources of the pods:
//
//   - The kubelet's Pods API (KEP-4188, on by default from Kubernetes 1.37) shows a pod
//     until its containers have stopped, and refuses requests until the kubelet knows
//     its pods. One list suffices, because a pod whose ids are not listed yet is itself
//     in the list, and the Pods API does not show it: see covers in accounting.go.
//   - If the kubelet does not serve the Pods API, the pods come from a consistent list
//     from the API server, together with two podresources lists a second apart and a
//     hold for pods that vanished before they ended.
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
