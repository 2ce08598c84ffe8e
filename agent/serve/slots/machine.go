package slots

import (
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// SettleTime is how long after an Allocate an observation does not apply to its
// slots: the kubelet assigns them only after the answer.
const SettleTime = 2 * time.Second

// Machine is one node's view of the slots of its devices. Its methods must not
// be called concurrently.
type Machine struct {
	node       string
	now        time.Duration
	generation Generation
	instances  map[string]*instance
	groups     map[string]*group
	waiting    []*pendingCall // in the order of their arrival
	counts     Counts
	// holding are the Instances with a slot of this node.
	holding map[string]*instance
	// lingering is what the last observation reported as such.
	lingering []string
	// early are the slots that the last observation named before the Instance was known, or
	// while its record named another owner.
	early map[Use]bool
	// touched and touchedGroups are what the current step has changed.
	touched       map[string]*instance
	touchedGroups map[string]*group
	schedule      schedule
}

// New returns a machine for a node that has no devices yet.
func New(node string) *Machine {
	return &Machine{
		node: node, instances: map[string]*instance{}, groups: map[string]*group{}, holding: map[string]*instance{},
		touched: map[string]*instance{}, touchedGroups: map[string]*group{}, schedule: newSchedule(),
	}
}

// Step handles an event and returns the commands, in order. Lists come before
// answers: the kubelet must learn that a slot is taken before its call is refused.
// Otherwise a Deployment creates ten failed Pods a second.
func (m *Machine) Step(e Event) []Command {
	decided := e.apply(m)
	return append(m.advertise(), decided...)
}

// Generation returns the value of Since for an observation that begins now.
func (m *Machine) Generation() Generation { return m.generation }

// Uses returns the IDs through which this node owns slots, sorted. A virtual ID is
// repeated if the node owns several slots through it. A container has at most one of
// them.
func (m *Machine) Uses() []Use {
	var uses []Use
	for _, inst := range m.holding {
		for number, s := range inst.slots {
			if !s.held.Free() {
				uses = append(uses, inst.use(number, s.held))
			}
			if s.owner.Node == m.node && s.owner != s.held {
				uses = append(uses, inst.use(number, s.owner))
			}
		}
	}
	slices.SortFunc(uses, CompareUses)
	return uses
}

// use returns the ID as which a container has a slot with an owner.
func (i *instance) use(number int, owner v0.Owner) Use {
	if owner.VirtualID == "" {
		return Use{i.name, v0.SlotName(i.name, number)}
	}
	use := Use{ID: owner.VirtualID}
	if i.group != nil {
		use.Resource = i.group.name
	}
	return use
}

// InUse reports whether an Instance is published or recorded. Another Instance of
// the same name must wait until it is not.
func (m *Machine) InUse(name string) bool {
	inst := m.instances[name]
	return inst != nil && (inst.published || inst.recorded)
}

// Counts returns how many slots are free, held by this node, taken by another
// owner, and conflicting.
func (m *Machine) Counts() Counts { return m.counts }

// Deadline returns the earliest time at which a [Ticked] has an effect, and whether
// there is one.
func (m *Machine) Deadline() (time.Duration, bool) { return m.schedule.next() }

func (e Ticked) apply(m *Machine) []Command {
	m.now = max(m.now, e.Now)
	var commands []Command
	for _, r := range m.schedule.due(m.now) {
		if g := m.groups[r.Name]; r.Group && g != nil {
			m.touchedGroups[g.name] = g
		}
		if inst := m.instances[r.Name]; !r.Group && inst != nil {
			if numbers := m.overdue(inst); len(numbers) > 0 {
				commands = append(commands, m.rewrite(inst, numbers)...)
			}
			commands = append(commands, m.probeDue(inst)...)
			if inst.recorded && inst.restoredAt <= m.now {
				inst.restoring = nil
			}
			m.changed(inst)
		}
	}
	return commands
}

// overdue returns the unrecorded slots whose claim is due.
func (m *Machine) overdue(inst *instance) []int {
	if !inst.recorded {
		return nil
	}
	var numbers []int
	for _, number := range inst.numbers() {
		if s := inst.slots[number]; s.unrecorded && !s.busy() && inst.claimAt(number, s) <= m.now {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// due returns when a [Ticked] next affects an Instance.
func (m *Machine) due(inst *instance) (at time.Duration, found bool) {
	at, found = inst.roster.due(func(id int) bool { return m.mustStayListed(inst, id) })
	earlier := func(t time.Duration) {
		if !found || t < at {
			at, found = t, true
		}
	}
	if inst.recorded {
		for number, s := range inst.slots {
			if s.unrecorded && !s.busy() {
				earlier(inst.claimAt(number, s))
			}
		}
	}
	if inst.recorded && len(inst.restoring) > 0 {
		earlier(inst.restoredAt)
	}
	if inst.probe.failing && inst.published {
		earlier(inst.probe.at)
	}
	return at, found
}

// instance returns an Instance, and adds it if necessary.
func (m *Machine) instance(name string) *instance {
	inst := m.instances[name]
	if inst == nil {
		inst = &instance{name: name, slots: map[int]*slot{}, roster: newRoster()}
		m.instances[name] = inst
	}
	return inst
}

// touch excludes a slot from observations that began earlier.
func (m *Machine) touch(s *slot) {
	m.generation++
	s.touched = m.generation
}
