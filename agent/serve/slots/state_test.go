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
	Node       string
	Now        time.Duration
	Generation Generation
	Instances  []InstanceState
	Groups     []GroupState
	Waiting    []CallState
}

// InstanceState is one Instance in a [State].
type InstanceState struct {
	Name          string
	Configuration string
	Published     bool
	Online        bool
	Shared        bool
	Recorded      bool
	// Left means that the Instance is no longer watched.
	Left bool
	// Suspended means that claims cannot be written.
	Suspended bool
	Version   uint64
	Capacity  int
	Slots     []SlotState
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
	Listed           bool
	Healthy          bool
}

// GroupState is the resource of one Configuration in a [State].
type GroupState struct {
	Name string
	// Offering are the Instances with a slot for one more container.
	Offering []string
	IDs      []IDState
}

// IDState is a virtual ID that is listed or in use.
type IDState struct {
	ID string
	// Slots are those with the ID, the current one first.
	Slots   []string
	Listed  bool
	Healthy bool
}

// CallState is an unanswered Allocate in a [State].
type CallState struct {
	Call     Call
	Resource Resource
	IDs      []int
	// Targets are the slots chosen for the IDs.
	Targets []Ref
}

// State returns a copy of what the machine knows, in a fixed order.
func (m *Machine) State() State {
	state := State{Node: m.node, Now: m.now, Generation: m.generation}
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		state.Instances = append(state.Instances, m.instances[name].state())
	}
	for _, name := range slices.Sorted(maps.Keys(m.groups)) {
		state.Groups = append(state.Groups, m.groups[name].state())
	}
	for _, c := range m.waiting {
		state.Waiting = append(state.Waiting, CallState{c.id, c.resource, slices.Clone(c.ids), slices.Clone(c.targets)})
	}
	return state
}

func (i *instance) state() InstanceState {
	state := InstanceState{
		Name: i.name, Published: i.published, Online: i.online, Shared: i.shared, Recorded: i.recorded, Left: i.left,
		Suspended: i.suspended(), Version: i.version, Capacity: i.capacity,
	}
	if i.group != nil {
		state.Configuration = i.group.name
	}
	for _, number := range i.numbers() {
		s := i.slots[number]
		state.Slots = append(state.Slots, SlotState{
			Slot: number, Owner: s.owner(), Held: s.held, State: s.state().String(),
			Patch:      [...]string{"settled", "claiming", "releasing"}[s.patch.kind],
			Superseded: s.superseded, ReleaseUncertain: i.releaseUncertain(s),
			Listed: i.list.entries[number] != nil, Healthy: i.list.healthy(number),
		})
	}
	return state
}

func (g *group) state() GroupState {
	state := GroupState{Name: g.name, Offering: slices.Sorted(maps.Keys(g.offering))}
	for _, id := range slices.Sorted(maps.Keys(g.virtual)) {
		v := g.virtual[id]
		is := IDState{ID: id, Slots: []string{v.current.String()}}
		for _, ref := range slices.SortedFunc(maps.Keys(v.slots), compareRefs) {
			if ref != v.current {
				is.Slots = append(is.Slots, ref.String())
			}
		}
		if number, ok := virtualNumber(id); ok {
			is.Listed, is.Healthy = g.list.entries[number] != nil, g.list.healthy(number)
		}
		state.IDs = append(state.IDs, is)
	}
	for _, h := range g.list.advertised {
		id := strconv.Itoa(h.ID)
		if g.virtual[id] == nil {
			state.IDs = append(state.IDs, IDState{ID: id, Listed: true, Healthy: h.Healthy})
		}
	}
	return state
}

// healthy reports whether the last list shows an ID as healthy.
func (l *idList) healthy(id int) bool {
	return slices.Contains(l.advertised, Health{id, true})
}
