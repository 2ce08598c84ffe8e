package observer

import (
	"cmp"
	"maps"
	"slices"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

// Observation is what the kubelet and its Pods show about Akri's resources.
type Observation struct {
	// Listed are the IDs that containers have.
	Listed []slots.Use
	// Open are resources with IDs that a container may have although they are not
	// listed.
	Open []string
	// Unreserved are the open resources with IDs that a container may have although the
	// kubelet considers them free. Pods that wait for their admission do not count: they
	// get IDs only by calls of the device plugin. Nor do Hidden IDs of a Pod that the
	// kubelet lists: it gives them to no other Pod.
	Unreserved []string
	// Duplicates are IDs that more than one container has, sorted. That is a defect of the
	// kubelet.
	Duplicates []Duplicate
	// Hidden are the resources with IDs that only a plain init container of a Pod got, and
	// that the Pod has until it ends, sorted. The list does not show them: they are known
	// only if Accounted.
	Hidden []Hidden
	// Accounted means that the Pods of the node were compared with the list. Often the list
	// alone decides.
	Accounted bool
}

// Hidden is a resource with IDs that only a plain init container got.
type Hidden struct {
	Resource string
	// Pod is the Pod as NAMESPACE/NAME.
	Pod string
}

// Duplicate is an ID that more than one container has.
type Duplicate struct {
	slots.Use
	// Pods are the Pods of the containers as NAMESPACE/NAME, sorted. There is only one if
	// it has all of the containers.
	Pods []string
}

// missing returns those of some uses, which are sorted, that the list does not show. Of one
// that is repeated, it shows only the first: see [slots.Machine.Uses].
func (o Observation) missing(own []slots.Use) []slots.Use {
	var all []slots.Use
	for i, use := range own {
		if i > 0 && use == own[i-1] || !slices.Contains(o.Listed, use) {
			all = append(all, use)
		}
	}
	return all
}

// shown returns what a list of the kubelet shows without the Pods.
func shown(listing kubelet.Listing) (o Observation) {
	pods := map[slots.Use][]string{} // a Pod once for each of its containers that has the ID
	for _, holding := range listing {
		for resource, ids := range holding.IDs {
			for _, id := range ids {
				use := slots.Use{Resource: resource, ID: id}
				pods[use] = append(pods[use], holding.Namespace+"/"+holding.Name)
			}
		}
	}
	for _, use := range slices.SortedFunc(maps.Keys(pods), slots.CompareUses) {
		o.Listed = append(o.Listed, use)
		if len(pods[use]) > 1 {
			slices.Sort(pods[use])
			o.Duplicates = append(o.Duplicates, Duplicate{use, slices.Compact(pods[use])})
		}
	}
	return o
}

// account decides which resources are open, by the Pods, which were read after the list.
func (o Observation) account(listing kubelet.Listing, pods []podInfo) Observation {
	o.Hidden, o.Accounted = hidden(pods), true
	o.Open, o.Unreserved = unaccounted(listing, pods), unaccounted(listing, unreserved(pods, listing))
	return o
}

// undecided says of uses, which are sorted, that containers may have them.
func (o Observation) undecided(own []slots.Use) Observation {
	for _, use := range own {
		o.Open = append(o.Open, use.Resource)
	}
	o.Open = slices.Compact(o.Open)
	o.Unreserved = o.Open
	return o
}

// unreserved returns the Pods without those that wait for their admission, and without
// the hidden ids that the kubelet keeps for a Pod. It keeps them while the Pod is active
// (pkg/kubelet/cm/devicemanager), and it lists all active Pods by name: one that was
// deleted by force is missing, or its successor is listed instead.
func unreserved(pods []podInfo, listing kubelet.Listing) []podInfo {
	listed, sameName := map[string]bool{}, map[string]int{}
	for _, holding := range listing {
		listed[holding.Namespace+"/"+holding.Name] = true
	}
	for _, pod := range pods {
		sameName[pod.key()]++
	}
	var all []podInfo
	for _, pod := range pods {
		if pod.Waiting {
			continue
		}
		if listed[pod.key()] && sameName[pod.key()] == 1 {
			pod.Hidden = nil
		}
		all = append(all, pod)
	}
	return all
}

// unaccounted returns the resources for which a Pod that has not terminated may have more
// ids than the list shows, sorted. Pods with the same name are counted together, because the
// list does not distinguish a deleted Pod from its successor.
func unaccounted(listing kubelet.Listing, pods []podInfo) []string {
	open := map[string]bool{}
	missing, sameName := map[string]map[string]int{}, map[string]int{}
	for _, pod := range pods {
		if pod.Terminated || !pod.wantsDevices() {
			continue
		}
		for name := range pod.Hidden {
			open[name] = true
		}
		key := pod.key()
		if sameName[key]++; missing[key] == nil {
			missing[key] = map[string]int{}
		}
		for name, count := range pod.Requests {
			missing[key][name] += count
		}
	}
	for _, holding := range listing {
		counts := missing[holding.Namespace+"/"+holding.Name]
		if counts == nil {
			continue
		}
		for name := range counts {
			if ids := len(holding.IDs[name]); ids > 0 {
				counts[name] -= ids
			} else if holding.DRA && sameName[holding.Namespace+"/"+holding.Name] == 1 {
				delete(counts, name) // served by DRA, so the list never shows ids
			}
		}
	}
	for _, counts := range missing {
		for name, count := range counts {
			if count > 0 {
				open[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(open))
}

// hidden returns the resources with IDs that only a plain init container has.
func hidden(pods []podInfo) []Hidden {
	var all []Hidden
	for _, pod := range pods {
		if pod.Terminated || pod.Waiting {
			continue
		}
		for name := range pod.Hidden {
			all = append(all, Hidden{name, pod.key()})
		}
	}
	slices.SortFunc(all, func(a, b Hidden) int { return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Pod, b.Pod)) })
	return slices.Compact(all)
}
