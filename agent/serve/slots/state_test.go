package slots

import (
	"maps"
	"slices"
	"strconv"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// State is a copy of what a machine knows, for the tests.
type State struct {
	Now        time.Duration
	Generation Generation
	Instances  []InstanceState
	Groups     []GroupState
	Waiting    int // calls
}

// InstanceState is one Instance in a [State].
type InstanceState struct {
	Name   string
	Shared bool
	// Left means that the Instance is no longer watched.
	Left  bool
	Slots []SlotState
}

// SlotState is one slot in a [State].
type SlotState struct {
	Slot  int
	Owner v0.Owner
	Held  v0.Owner
	// State is what the record and the containers say, and Patch the one in flight.
	State, Patch     string
	Superseded       bool
	ReleaseUncertain bool
	Healthy          bool
}

// GroupState is the resource of one Configuration in a [State].
type GroupState struct {
	Name string
	IDs  []IDState
}

// IDState is a virtual ID that is listed or in use.
type IDState struct {
	ID string
	// Slots are those with the ID, the current one first.
	Slots []string
}

// State returns a copy of what the machine knows, in a fixed order.
func (m *Machine) State() State {
	state := State{Now: m.now, Generation: m.generation, Waiting: len(m.waiting)}
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		i := m.instances[name]
		is := InstanceState{Name: name, Shared: i.shared, Left: i.left}
		for _, number := range i.numbers() {
			s := i.slots[number]
			is.Slots = append(is.Slots, SlotState{
				Slot: number, Owner: s.owner(), Held: s.held, State: s.state().String(),
				Patch:      [...]string{"settled", "claiming", "releasing"}[s.patch.kind],
				Superseded: s.superseded, ReleaseUncertain: i.releaseUncertain(s), Healthy: i.list.healthy(number),
			})
		}
		state.Instances = append(state.Instances, is)
	}
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		g, gs := m.groups[name], GroupState{Name: name}
		for _, id := range slices.Sorted(maps.Keys(g.virtual)) {
			is := IDState{ID: id}
			for _, ref := range g.slotsOf(id) {
				is.Slots = append(is.Slots, ref.String())
			}
			gs.IDs = append(gs.IDs, is)
		}
		for _, h := range g.list.advertised {
			if id := strconv.Itoa(h.ID); g.virtual[id] == nil {
				gs.IDs = append(gs.IDs, IDState{ID: id})
			}
		}
		state.Groups = append(state.Groups, gs)
	}
	return state
}

// healthy reports whether the last list shows an ID as healthy.
func (l *idList) healthy(id int) bool {
	return slices.Contains(l.advertised, Health{id, true})
}
