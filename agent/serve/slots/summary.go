package slots

import (
	"maps"
	"slices"

	v0 "akri.sh/akri/api/v0"
)

// Counts are the numbers of slots by state, for metrics.
type Counts struct {
	// Free are the slots without an owner.
	Free int
	// Held are those of this node, Taken those of other nodes, and Conflicting those that a
	// container of this node has although the record names another owner.
	Held, Taken, Conflicting Levels
	// Unwritable are the Instances whose slots cannot be claimed at present, by Configuration.
	Unwritable map[string]int
}

// Levels counts the slots given through the resource of their Instance, and those given
// through that of the Configuration.
type Levels struct{ Instance, Configuration int }

func (l *Levels) count(owner v0.Owner) {
	if owner.VirtualID != "" {
		l.Configuration++
	} else {
		l.Instance++
	}
}

// Counts counts the slots. It looks at all of them.
func (m *Machine) Counts() Counts {
	c := Counts{Unwritable: map[string]int{}}
	for _, inst := range m.instances {
		if inst.group != nil {
			c.Unwritable[inst.group.name] += 0
		}
		if inst.group != nil && inst.suspended() {
			c.Unwritable[inst.group.name]++
		}
		for _, s := range inst.slots {
			switch owner := s.owner(); {
			case s.contested():
				c.Conflicting.count(s.held)
			case owner.Free():
				c.Free++
			case owner.Node == m.node:
				c.Held.count(owner)
			default:
				c.Taken.count(owner)
			}
		}
	}
	return c
}

// summary is what is counted of an Instance's slots. It is computed when the Instance
// changes, so that other events need not look at it.
type summary struct {
	// owners is the number of slots that have an owner or are being claimed.
	owners int
	// available is the number of slots that a container can be given.
	available int
	// own means that this node owns a slot, or that a container has one.
	own bool
	// virtual are the virtual IDs of this node's slots.
	virtual map[int][]string
	// member means that the Instance is published, and offers that it has an available
	// slot for its Configuration's resource.
	member, offers bool
	// health is that of the slots in virtual.
	health map[int]bool
}

// summarize counts an Instance's slots once, so that an event costs what it concerns and
// not a look at all Instances of the group.
func (m *Machine) summarize(inst *instance) summary {
	s := summary{member: inst.published}
	for number, each := range inst.slots {
		if !each.free() || each.want().Node != "" || inst.awaited[number] {
			s.owners++
		}
		if inst.usable(number, each) {
			s.available++
		}
		s.own = s.own || each.owner().Node == m.node || !each.held.Free()
		for _, id := range m.virtualIDs(each) {
			if s.virtual == nil {
				s.virtual, s.health = map[int][]string{}, map[int]bool{}
			}
			s.virtual[number] = append(s.virtual[number], id)
			s.health[number] = inst.online && inst.ready(number, each)
		}
	}
	for number := range s.health {
		if number >= inst.capacity && s.owners > inst.capacity { // the slot is not given again after a shrink
			s.health[number] = false
		}
	}
	s.available = min(s.available, max(0, inst.capacity-s.owners))
	s.offers = inst.online && s.available > 0
	return s
}

// virtualIDs returns the virtual IDs as which this node owns the slot, claims it or has
// given it to a container.
func (m *Machine) virtualIDs(s *slot) []string {
	var ids []string
	for _, owner := range [...]v0.Owner{s.owner(), s.held, s.want()} {
		if owner.Node == m.node && owner.VirtualID != "" && !slices.Contains(ids, owner.VirtualID) {
			ids = append(ids, owner.VirtualID)
		}
	}
	return ids
}

// changed updates what depends on an Instance, and records that its list and its
// group's may have to be sent again.
func (m *Machine) changed(inst *instance) {
	m.dirty[inst.name] = inst
	before := inst.summary
	inst.summary = m.summarize(inst)
	if inst.group != nil && inst.group.update(inst, before) {
		m.dirtyGroups[inst.group.name] = inst.group
	}
}

// sameVirtual reports whether two summaries are the same for the group's list.
func (s summary) sameVirtual(o summary) bool {
	return s.member == o.member && s.offers == o.offers && maps.Equal(s.health, o.health) &&
		maps.EqualFunc(s.virtual, o.virtual, slices.Equal)
}
