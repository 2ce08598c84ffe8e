package slots

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Quiet is how long an id stays in the kubelet's list, unhealthy and not named
// by any call, before it is removed. The kubelet (1.37) crashes when an id
// leaves the list between its choice and its use (pkg/kubelet/cm/devicemanager:
// allocateContainerResources reads the topology of an absent device). On an
// idle machine 20 ms was enough; a stalled one is slower.
const Quiet = 30 * time.Second

// never is the time of what has not happened yet, and forever of what will not.
const never, forever = -Quiet, time.Duration(math.MaxInt64)

// idList is the kubelet's list of one resource.
type idList struct {
	entries map[int]*listedID
	// advertised is the last list; nil before the first one and after the resource was
	// withdrawn.
	advertised []Health
}

// listedID is one ID in a list.
type listedID struct {
	// named is when a call last named the ID, and generation that of the call.
	named      time.Duration
	generation Generation
	// unwanted is since when the ID is unhealthy and waits to be removed, or never.
	unwanted time.Duration
}

func newIDList() *idList { return &idList{entries: map[int]*listedID{}} }

// quietFrom returns when an unwanted ID was last healthy or named by a call.
func (e *listedID) quietFrom() time.Duration { return max(e.unwanted, e.named) }

// name records that a call names IDs.
func (l *idList) name(ids []int, now time.Duration, g Generation) {
	for _, id := range ids {
		if e := l.entries[id]; e != nil {
			e.named, e.generation = now, g
		}
	}
}

// update returns the list that shows the wanted IDs. Other IDs that are listed become
// unhealthy, and leave the list after [Quiet] unless keep reports that they are in use:
// the status of a container's Pod would show a missing ID as healthy.
func (l *idList) update(wanted map[int]bool, now time.Duration, keep func(id int) bool) []Health {
	for id := range wanted {
		if e := l.entries[id]; e != nil {
			e.unwanted = never
		} else {
			l.entries[id] = &listedID{named: never, unwanted: never}
		}
	}
	var list []Health
	for _, id := range slices.Sorted(maps.Keys(l.entries)) {
		e := l.entries[id]
		health, found := wanted[id]
		if !found && e.unwanted == never {
			e.unwanted = now
		}
		if !found && now-e.quietFrom() >= Quiet && !keep(id) {
			delete(l.entries, id)
			continue
		}
		list = append(list, Health{id, health})
	}
	return list
}

// due returns when the next ID leaves the list.
func (l *idList) due(keep func(id int) bool) time.Duration {
	at := forever
	for id, e := range l.entries {
		if e.unwanted != never && !keep(id) {
			at = min(at, e.quietFrom()+Quiet)
		}
	}
	return at
}

// advertise returns the command that updates the kubelet's list, if it differs.
func (l *idList) advertise(resource Resource, list []Health, published bool) []Command {
	switch {
	case len(list) == 0 && len(l.advertised) > 0 && !published:
		l.advertised = nil
		return []Command{Withdraw{resource}}
	case !slices.Equal(list, l.advertised):
		l.advertised = list
		return []Command{Advertise{resource, list}}
	}
	return nil
}
