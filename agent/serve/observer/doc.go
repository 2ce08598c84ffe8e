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
// The Pods come from the API server. A watch of them says when it is time to look, and
// which Pods vanished before they terminated; as it may be behind, a consistent list that
// is read after the kubelet's list has the last word. A Pod that was bound to the node
// meanwhile is in it, and counts as one whose ids are not listed yet. What a container got
// after the observation began, the observation does not judge.
//
// Read accounting.go (the decision, pure), pod.go, pods.go (the Pods of the node),
// health.go, then observer.go.
//
// Always: if in doubt, a slot stays in use. Never: a decision based on a missing
// response.
package observer
