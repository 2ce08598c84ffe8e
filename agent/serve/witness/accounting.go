package witness

import (
	"slices"
	"strings"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Listing is one podresources list: the ids of our resources that each pod's
// containers have.
type Listing []Holding

// Holding is what one pod has.
type Holding struct {
	Namespace, Name string
	// IDs by resource name.
	IDs map[string][]string
}

// Observation is what was learnt about slots.
type Observation struct {
	// Held are the slots that containers have, also those this node does not own
	// by the record.
	Held []slots.Ref
	// Ended are slots of this node that no container has.
	Ended []slots.Ref
	// Open are slots of this node of which it cannot be said yet.
	Open []slots.Ref
}

// Account decides which of this node's own slots have ended. listings are the
// lists taken, the youngest last; pods are those of the node at a moment after
// the last list.
func Account(own []slots.Ref, listings []Listing, pods []Pod) Observation {
	var o Observation
	last := listings[len(listings)-1]
	o.Held = last.refs()
	listed := map[slots.Ref]bool{}
	for _, l := range listings {
		for _, ref := range l.refs() {
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

// unaccounted returns the resources of which some pod that has not ended may have
// more than the list shows. Pods of one name are taken together, for the list
// does not tell a deleted pod from its successor.
func unaccounted(listing Listing, pods []Pod) map[string]bool {
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

// refs returns the slots in a list, in order. Ids that are no slots of their
// resource (a Configuration's) are left out.
func (l Listing) refs() []slots.Ref {
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
