package slots

import (
	"maps"
	"slices"
	"time"
)

const (
	// Quiet is how long an id stays in the kubelet's list, unhealthy and not named
	// by any call, before it is removed. The kubelet (1.37) crashes when an id
	// leaves the list between its choice and its use (pkg/kubelet/cm/devicemanager:
	// allocateContainerResources reads the topology of an absent device). On an
	// idle machine 20 ms was enough; a stalled one is slower.
	Quiet = 30 * time.Second

	// SettleTime is how long after an Allocate an observation does not apply to its
	// slots: the kubelet assigns them only after the answer.
	SettleTime = 2 * time.Second

	// retryInterval is the delay before a failed claim that no call waits for is
	// retried.
	retryInterval = 10 * time.Second
)

// Machine is one node's view of the slots of its devices. Its methods must not
// be called concurrently.
type Machine struct {
	node       string
	now        time.Duration
	generation Generation
	instances  map[string]*instance
	waiting    []*call // in the order of their arrival
	touched    map[string]bool
}

// New returns a machine for a node that has no devices yet.
func New(node string) *Machine {
	return &Machine{node: node, instances: map[string]*instance{}, touched: map[string]bool{}}
}

// Step handles an event and returns the commands, in order. Lists come before
// answers: the kubelet must learn that a slot is taken before its call is refused.
// Otherwise a Deployment creates ten failed pods a second.
func (m *Machine) Step(e Event) []Command {
	decided := e.apply(m)
	return append(m.advertise(), decided...)
}

// Generation returns the value of Since for an observation that begins now.
func (m *Machine) Generation() Generation { return m.generation }

// Held returns the slots that this node owns, sorted.
func (m *Machine) Held() []Ref {
	var held []Ref
	for name, inst := range m.instances {
		for number, s := range inst.slots {
			if s.mine(m.node) || s.contradicted {
				held = append(held, Ref{name, number})
			}
		}
	}
	slices.SortFunc(held, Compare)
	return held
}

// InUse reports whether an Instance is published or recorded. Another Instance of
// the same name must wait until it is not.
func (m *Machine) InUse(instance string) bool {
	inst := m.instances[instance]
	return inst != nil && (inst.published || inst.recorded)
}

// Counts are the numbers of slots by state.
type Counts struct{ Free, Held, Taken, Contradicted int }

// Counts returns how many slots are free, held by this node, taken by another
// owner, and contradicted.
func (m *Machine) Counts() Counts {
	var c Counts
	for _, inst := range m.instances {
		for _, s := range inst.slots {
			switch {
			case s.contradicted:
				c.Contradicted++
			case s.free():
				c.Free++
			case s.owner.Node == m.node:
				c.Held++
			default:
				c.Taken++
			}
		}
	}
	return c
}

// Deadline returns the earliest time at which a [Ticked] has an effect, and whether
// there is one.
func (m *Machine) Deadline() (time.Duration, bool) {
	var earliest time.Duration
	found := false
	for _, inst := range m.instances {
		for _, s := range inst.slots {
			if at, waits := m.slotDeadline(inst, s); waits && (!found || at < earliest) {
				earliest, found = at, true
			}
		}
	}
	return earliest, found
}

func (m *Machine) slotDeadline(inst *instance, s *slot) (time.Duration, bool) {
	switch {
	case s.retiring && !m.keeps(inst, s):
		return s.quietFrom() + Quiet, true
	case s.unwritten && inst.recorded && !s.busy():
		return s.retryAt, true
	}
	return 0, false
}

func (e Ticked) apply(m *Machine) []Command {
	m.now = max(m.now, e.Now)
	var commands []Command
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		inst := m.instances[name]
		if numbers := m.overdue(inst); len(numbers) > 0 {
			commands = append(commands, m.claim(inst, numbers))
		}
		if slices.ContainsFunc(inst.numbers(), func(n int) bool { return inst.slots[n].retiring }) {
			m.changed(inst)
		}
	}
	return commands
}

// overdue returns the unwritten slots whose claim is due.
func (m *Machine) overdue(inst *instance) []int {
	if !inst.recorded {
		return nil
	}
	var numbers []int
	for _, number := range inst.numbers() {
		if s := inst.slots[number]; s.unwritten && !s.busy() && s.retryAt <= m.now {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// instance returns an Instance, and adds it if necessary.
func (m *Machine) instance(name string) *instance {
	inst := m.instances[name]
	if inst == nil {
		inst = &instance{name: name, slots: map[int]*slot{}}
		m.instances[name] = inst
	}
	return inst
}

// changed records that the list of an Instance may have to be sent again.
func (m *Machine) changed(inst *instance) { m.touched[inst.name] = true }

// touch excludes a slot from observations that began earlier.
func (m *Machine) touch(s *slot) {
	m.generation++
	s.touched = m.generation
}
