package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// longestRest bounds how long an entry that always comes back is left alone.
const longestRest = time.Hour

// dead are those of Akri's resources of which a node has none and whose Instance
// or Configuration exists nowhere, sorted.
func dead(node *corev1.Node, exists map[string]bool) []corev1.ResourceName {
	var found []corev1.ResourceName
	for _, resource := range emptyResources(node) {
		if name, ours := nameIn(resource); ours && !exists[name] {
			found = append(found, resource)
		}
	}
	return found
}

// removal is the patch of a node's status that removes resources if there is
// still none of them.
func removal(node *corev1.Node, resources []corev1.ResourceName) []operation {
	patch := []operation{{"test", "/metadata/uid", node.UID}}
	for _, resource := range resources {
		for _, list := range []struct {
			path       string
			quantities corev1.ResourceList
		}{{"/status/capacity/", node.Status.Capacity}, {"/status/allocatable/", node.Status.Allocatable}} {
			if quantity, found := list.quantities[resource]; found {
				path := list.path + pointer(string(resource))
				patch = append(patch, operation{"test", path, quantity.String()}, operation{Op: "remove", Path: path})
			}
		}
	}
	return patch
}

// graves are the dead resources of a node.
type graves map[corev1.ResourceName]*grave

type grave struct {
	since   time.Time // zero while it is not dead
	removed int       // how often
	at      time.Time // when last
}

// due tells which of the resources that are dead now are to be removed, and when
// to look again; zero if there is nothing to look for. A kubelet that still
// offers a resource puts it back: it is left alone longer each time.
func (g graves) due(dead []corev1.ResourceName, delay time.Duration, now time.Time) (remove []corev1.ResourceName, next time.Time) {
	still := map[corev1.ResourceName]bool{}
	for _, resource := range dead {
		still[resource] = true
		if g[resource] == nil {
			g[resource] = &grave{}
		}
		found := g[resource]
		if found.since.IsZero() {
			found.since = now
		}
		if at := found.since.Add(doubled(delay, found.removed, longestRest)); at.After(now) {
			next = sooner(next, at)
		} else {
			remove = append(remove, resource)
		}
	}
	for resource, old := range g {
		switch {
		case still[resource]:
		case old.removed > 0 && now.Sub(old.at) < 2*longestRest:
			old.since = time.Time{}
		default:
			delete(g, resource)
		}
	}
	return remove, next
}

// buried notes that resources were removed.
func (g graves) buried(resources []corev1.ResourceName, now time.Time) {
	for _, resource := range resources {
		g[resource].since = time.Time{}
		g[resource].removed++
		g[resource].at = now
	}
}
