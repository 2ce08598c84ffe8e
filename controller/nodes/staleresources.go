package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/internal/deadline"
	"akri.sh/akri/internal/jsonpatch"
)

// delaysBetweenRemovals is how many times the delay is between two removals from a node.
const delaysBetweenRemovals = 10

// staleOf returns the resources of Akri that are 0 on a node and have the name of
// no existing Instance or Configuration, sorted.
func staleOf(node *corev1.Node, exists map[string]bool) []corev1.ResourceName {
	var stale []corev1.ResourceName
	for _, resource := range emptyResources(node) {
		if name, ok := nameIn(resource); ok && !exists[name] {
			stale = append(stale, resource)
		}
	}
	return stale
}

// resourceRemoval returns the patch of a node's status that removes resources if
// they still have the quantities that were read.
func resourceRemoval(node *corev1.Node, resources []corev1.ResourceName) jsonpatch.Patch {
	patch := jsonpatch.Patch{jsonpatch.Test("/metadata/uid", node.UID)}
	for _, resource := range resources {
		for _, list := range []struct {
			field      string
			quantities corev1.ResourceList
		}{{"capacity", node.Status.Capacity}, {"allocatable", node.Status.Allocatable}} {
			if quantity, found := list.quantities[resource]; found {
				path := jsonpatch.Pointer("status", list.field, string(resource))
				patch = append(patch, jsonpatch.Test(path, quantity.String()), jsonpatch.Remove(path))
			}
		}
	}
	return patch
}

// staleNode says since when a node has had stale resources, and when some were last removed.
type staleNode struct{ since, removed time.Time }

// due returns when to remove the stale resources of the node. Something that puts them back
// again and again gets a removal now and then.
func (s staleNode) due(delay time.Duration) time.Time {
	return deadline.Latest(s.since.Add(delay), s.removed.Add(delaysBetweenRemovals*delay))
}
