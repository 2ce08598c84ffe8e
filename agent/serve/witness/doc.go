// Package witness tells which slots containers of this node have, and which
// no container has any more.
//
// No single source is a proof. The kubelet's podresources list is empty for a
// second after the kubelet started (for as long as the API server is down), leaves
// out what a plain init container has, and drops a force-deleted pod whose
// container still runs. So a slot counts as ended only if the list lacks it and
// every pod of the node that asks for the resource, and has not ended, is
// accounted for in that list. The pods come from the kubelet's Pods API (KEP-4188,
// on by default from Kubernetes 1.37), which shows a pod until its containers have
// stopped and refuses to answer while the list is not to be trusted; without it
// they come from a consistent list of the API server, with two podresources lists
// a second apart and a hold for pods that vanished without an end.
//
// Read accounting.go (the decision, pure), pod.go, lister.go, kubeletpods.go,
// apipods.go, then witness.go.
//
// Always: doubt keeps a slot. Never: a decision by the absence of an answer.
package witness
