package slots

import (
	"maps"
	"slices"
	"time"
)

// Quiet is how long an id stays in the kubelet's list, unhealthy and not named
// by any call, before it is removed. The kubelet (1.37) crashes when an id
// leaves the list between its choice and its use (pkg/kubelet/cm/devicemanager:
// allocateContainerResources reads the topology of an absent device). On an
// idle machine 20 ms was enough; a stalled one is slower.
const Quiet = 30 * time.Second

// never is the time of what has not happened yet.
const never = -Quiet

// roster is the kubelet's list of one resource.
type roster struct {
	entries map[int]*entry
	// advertised is the last list; nil before the first one and after the resource was
	// withdrawn.
	advertised []Health
}

// entry is one ID in a roster.
type entry struct {
	// named is when a call last named the ID, and touched the generation of that call.
	named   time.Duration
	touched Generation
	// draining means that, since drainingSince, the ID is unhealthy and waiting to be
	// removed.
	draining      bool
	drainingSince time.Duration
}

func newRoster() *roster { return &roster{entries: map[int]*entry{}} }

// quietFrom returns when a draining ID was last healthy or named by a call.
func (e *entry) quietFrom() time.Duration { return max(e.drainingSince, e.named) }

// healthy reports whether the last list shows an ID as healthy.
func (r *roster) healthy(id int) bool {
	i, found := slices.BinarySearchFunc(r.advertised, id, func(h Health, id int) int { return h.ID - id })
	return found && r.advertised[i].Healthy
}

// name records that a call names IDs.
func (r *roster) name(ids []int, now time.Duration, g Generation) {
	for _, id := range ids {
		if e := r.entries[id]; e != nil {
			e.named, e.touched = now, g
		}
	}
}

// update returns the list that shows the wanted IDs. Other IDs that are listed become
// unhealthy, and leave the list after [Quiet] unless keep reports that they are in use:
// the status of a container's Pod would show a missing ID as healthy.
func (r *roster) update(wanted map[int]bool, now time.Duration, keep func(id int) bool) []Health {
	for id := range wanted {
		if e := r.entries[id]; e != nil {
			e.draining = false
		} else {
			r.entries[id] = &entry{named: never}
		}
	}
	var list []Health
	for _, id := range slices.Sorted(maps.Keys(r.entries)) {
		e := r.entries[id]
		health, found := wanted[id]
		if !found {
			if !e.draining {
				e.draining, e.drainingSince = true, now
			}
			if now-e.quietFrom() >= Quiet && !keep(id) {
				delete(r.entries, id)
				continue
			}
		}
		list = append(list, Health{id, health})
	}
	return list
}

// due returns when the next ID leaves the list.
func (r *roster) due(keep func(id int) bool) (at time.Duration, found bool) {
	for id, e := range r.entries {
		if e.draining && (!found || e.quietFrom()+Quiet < at) && !keep(id) {
			at, found = e.quietFrom()+Quiet, true
		}
	}
	return at, found
}

// advertise returns the command that updates the kubelet's list, if it differs.
func (r *roster) advertise(resource Resource, list []Health, published bool) []Command {
	switch {
	case len(list) == 0 && len(r.advertised) > 0 && !published:
		r.advertised = nil
		return []Command{Withdraw{resource}}
	case !slices.Equal(list, r.advertised):
		r.advertised = list
		return []Command{Advertise{resource, list}}
	}
	return nil
}
