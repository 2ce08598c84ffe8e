package slots

import (
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// State is a copy of what a machine knows.
type State struct {
	Node       string
	Now        time.Duration
	Generation Generation
	Instances  []InstanceState
	Waiting    []Call
}

// InstanceState is one Instance in a [State].
type InstanceState struct {
	Name      string
	Published bool
	Recorded  bool
	Capacity  int
	Slots     []SlotState
}

// SlotState is one slot in a [State].
type SlotState struct {
	Slot         int
	Owner        v0.Owner
	Phase        string
	Granted      bool
	Unwritten    bool
	Contradicted bool
	Listed       bool
	Healthy      bool
}

// State returns a copy of what the machine knows, in a fixed order.
func (m *Machine) State() State {
	state := State{Node: m.node, Now: m.now, Generation: m.generation}
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		inst := m.instances[name]
		is := InstanceState{Name: name, Published: inst.published, Recorded: inst.recorded, Capacity: inst.capacity}
		for _, number := range inst.numbers() {
			s := inst.slots[number]
			is.Slots = append(is.Slots, SlotState{
				Slot: number, Owner: s.owner, Phase: s.phase.String(), Granted: s.granted, Unwritten: s.unwritten,
				Contradicted: s.contradicted, Listed: s.listed, Healthy: slices.Contains(inst.advertised, Health{number, true}),
			})
		}
		state.Instances = append(state.Instances, is)
	}
	for _, c := range m.waiting {
		state.Waiting = append(state.Waiting, c.id)
	}
	return state
}
