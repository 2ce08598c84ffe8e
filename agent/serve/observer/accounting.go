package observer

import (
	"slices"
	"strings"

	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Observation is what the kubelet and its pods show about slots.
type Observation struct {
	// Held are the slots that containers have, including slots that the record
	// does not assign to this node.
	Held []slots.Ref
	// Ended are slots of this node that no container has.
	Ended []slots.Ref
	// Open are slots of this node that are still undecided.
	Open []slots.Ref
}

// account decides which of this node's own slots have ended. The listings are
// ordered by age, the latest last; the pods were read after the last listing.
func account(own []slots.Ref, listings []kubelet.Listing, pods []podInfo) Observation {
	var o Observation
	last := listings[len(listings)-1]
	o.Held = listedSlots(last)
	listed := map[slots.Ref]bool{}
	for _, l := range listings {
		for _, ref := range listedSlots(l) {
			listed[ref] = true
		}
	}
	open := unaccounted(last, pods)
	for _, ref := range own {
		switch {
		case listed[ref]:
		case open[v0.ResourceName(ref.Instance)]:
			o.Open = append(o.Open, ref)
		default:
			o.Ended = append(o.Ended, ref)
		}
	}
	return o
}

// unaccounted returns the resources for which a pod that has not ended may have more
// ids than the list shows. Pods with the same name are counted together, because the
// list does not distinguish a deleted pod from its successor.
func unaccounted(listing kubelet.Listing, pods []podInfo) map[string]bool {
	open := map[string]bool{}
	missing := map[string]map[string]int{}
	for _, pod := range pods {
		if pod.Ended {
			continue
		}
		for name := range pod.Hidden {
			open[name] = true
		}
		if missing[pod.key()] == nil {
			missing[pod.key()] = map[string]int{}
		}
		for name, count := range pod.Requests {
			missing[pod.key()][name] += count
		}
	}
	for _, holding := range listing {
		for name, ids := range holding.IDs {
			if counts := missing[holding.Namespace+"/"+holding.Name]; counts != nil {
				counts[name] -= len(ids)
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
	return open
}

// listedSlots returns the slots in a list, sorted. It skips ids that are not slots
// of an Instance (those of a Configuration's resource).
func listedSlots(l kubelet.Listing) []slots.Ref {
	var refs []slots.Ref
	for _, holding := range l {
		for name, ids := range holding.IDs {
			instance := strings.TrimPrefix(name, v0.Domain+"/")
			for _, id := range ids {
				if slot, err := v0.ParseSlotName(instance, id); err == nil {
					refs = append(refs, slots.Ref{Instance: instance, Slot: slot})
				}
			}
		}
	}
	slices.SortFunc(refs, slots.Compare)
	return slices.Compact(refs)
}
