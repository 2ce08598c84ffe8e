package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/deadline"
	"akri.sh/akri/internal/jsonpatch"
)

// maxStaleDelay limits the back-off for a resource that keeps being put back.
const maxStaleDelay = time.Hour

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

// staleResources records when the resources of one node became stale and how often
// they were removed.
type staleResources map[corev1.ResourceName]*staleResource

type staleResource struct {
	since       time.Time // zero while it is not stale
	removals    int
	lastRemoval time.Time
}

// due returns which of the currently stale resources to remove, and when to check
// again; zero if there is nothing to check. A kubelet that still offers a resource
// puts it back, so the delay doubles with each removal.
func (s staleResources) due(
	stale []corev1.ResourceName, delay time.Duration, now time.Time,
) (remove []corev1.ResourceName, next time.Time) {
	current := map[corev1.ResourceName]bool{}
	for _, resource := range stale {
		current[resource] = true
		if s[resource] == nil {
			s[resource] = &staleResource{}
		}
		entry := s[resource]
		if entry.since.IsZero() {
			entry.since = now
		}
		if at := entry.since.Add(backoff.Delay(delay, maxStaleDelay, entry.removals)); at.After(now) {
			next = deadline.Earliest(next, at)
		} else {
			remove = append(remove, resource)
		}
	}
	for resource, entry := range s {
		switch {
		case current[resource]:
		case entry.removals > 0 && now.Sub(entry.lastRemoval) < 2*maxStaleDelay:
			entry.since = time.Time{}
		default:
			delete(s, resource)
		}
	}
	return remove, next
}

// recordRemoval records that resources were removed.
func (s staleResources) recordRemoval(resources []corev1.ResourceName, now time.Time) {
	for _, resource := range resources {
		s[resource].since = time.Time{}
		s[resource].removals++
		s[resource].lastRemoval = now
	}
}
