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
	edits      int // see [Machine.Edits]
	instances  map[string]*instance
	groups     map[string]*group
	waiting    []*pendingCall // in the order of their arrival
	// unaccounted is what the last observation reported as such.
	unaccounted []string
	// unmatched are the slots that the last observation named before the Instance was known,
	// or while its record named another owner.
	unmatched map[Use]bool
	// dirty and dirtyGroups are those whose lists the current step may have changed.
	dirty       map[string]*instance
	dirtyGroups map[string]*group
	// alarms are when a [Ticked] next affects a resource.
	alarms map[Resource]time.Duration
}

// New returns a machine for a node that has no devices yet.
func New(node string) *Machine {
	return &Machine{
		node: node, instances: map[string]*instance{}, groups: map[string]*group{},
		dirty: map[string]*instance{}, dirtyGroups: map[string]*group{}, alarms: map[Resource]time.Duration{},
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

// Edits counts how often the owner of a slot of this node was changed, or became this node,
// other than by a result that the machine waited for: an observation is then due.
func (m *Machine) Edits() int { return m.edits }

// Uses returns the IDs through which this node owns slots, sorted. A virtual ID is
// repeated if the node owns several slots through it. A container has at most one of
// them.
func (m *Machine) Uses() []Use {
	var uses []Use
	for _, inst := range m.instances {
		if !inst.own {
			continue
		}
		for number, s := range inst.slots {
			if !s.held.Free() {
				uses = append(uses, inst.use(number, s.held))
			}
			if owner := s.owner(); owner.Node == m.node && owner != s.held {
				uses = append(uses, inst.use(number, owner))
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

// Deadline returns the earliest time at which a [Ticked] has an effect, and whether
// there is one.
func (m *Machine) Deadline() (at time.Duration, found bool) {
	at = forever
	for _, t := range m.alarms {
		at = min(at, t)
	}
	return at, at < forever
}

// schedule sets when a [Ticked] next affects a resource.
func (m *Machine) schedule(r Resource, at time.Duration) {
	delete(m.alarms, r)
	if at < forever {
		m.alarms[r] = at
	}
}

func (e Ticked) apply(m *Machine) []Command {
	m.now = max(m.now, e.Now)
	var names []string // of Instances
	for r, at := range m.alarms {
		if at <= m.now {
			delete(m.alarms, r)
			if m.listOf(r) != nil && !r.Group {
				names = append(names, r.Name)
			}
		}
	}
	var commands []Command
	slices.Sort(names)
	for _, name := range names {
		inst := m.instances[name]
		if len(inst.awaited) > 0 && inst.recorded && inst.restoredAt <= m.now {
			clear(inst.awaited)
			commands = append(commands, m.rewrite(inst, inst.unwritten())...)
		}
		commands = append(commands, m.retryDue(inst)...)
		m.changed(inst)
	}
	return commands
}

// due returns when a [Ticked] next affects an Instance.
func (m *Machine) due(inst *instance) time.Duration {
	at := inst.list.due(func(id int) bool { return m.mustStayListed(inst, id) })
	if inst.retry.failing && (inst.shared && inst.published || len(inst.unwritten()) > 0) {
		at = min(at, inst.retry.at)
	}
	if len(inst.awaited) > 0 && inst.recorded {
		at = min(at, inst.restoredAt)
	}
	return at
}

// instance returns an Instance, and adds it if necessary.
func (m *Machine) instance(name string) *instance {
	inst := m.instances[name]
	if inst == nil {
		inst = &instance{name: name, slots: map[int]*slot{}, awaited: map[int]bool{}, list: newIDList()}
		m.instances[name] = inst
	}
	return inst
}

// exclude excludes a slot from observations that began earlier.
func (m *Machine) exclude(s *slot) {
	m.generation++
	s.generation = m.generation
}
