package slots

import (
	"fmt"
	"math"
	"time"

	v0 "akri.sh/akri/api/v0"
)

func (e InstanceRecorded) apply(m *Machine) []Command {
	inst := m.instance(e.Instance)
	inst.left = false
	commands := m.record(inst, &e.Record)
	return append(commands, m.resume(inst)...)
}

func (e InstanceLeft) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	inst.left = true
	m.changed(inst)
	return nil
}

func (e InstanceDeleted) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	// A record of the next Instance may have been read already, with a later version.
	// The watch delivers it again after the deletion.
	if e.Version > 0 {
		inst.version = e.Version
	}
	return append(m.deleted(inst), m.resume(inst)...)
}

// restoreTime is how long after the creation of an Instance the agents of other nodes may
// take to write the owners that it had before.
const restoreTime = 5 * time.Second

// deleted applies the deletion of an Instance. Slots that a container has are claimed
// again if the Instance is created again.
func (m *Machine) deleted(inst *instance) []Command {
	for number, owner := range inst.usage {
		if !owner.Free() && owner.Node != m.node {
			if inst.restoring == nil {
				inst.restoring = map[int]bool{}
			}
			inst.restoring[number] = true
		}
	}
	inst.left, inst.gone = false, true
	inst.recorded, inst.usage = false, nil
	return m.record(inst, nil)
}

// record adopts a later record for all slots without a patch in flight. The others
// change when their patch settles.
func (m *Machine) record(inst *instance, record *Record) []Command {
	before := inst.version
	if record != nil && record.Version >= inst.version { // the watch may lag behind this node's own patches
		if !inst.recorded {
			inst.restoredAt = m.now + restoreTime
			m.hasten(inst)
		}
		inst.recorded, inst.gone = true, false
		inst.version, inst.usage = record.Version, record.Usage
		inst.place = placeOf(m.node, record.Nodes)
		m.join(inst, record.Configuration)
	}
	for number, owner := range inst.usage {
		if !owner.Free() {
			inst.slot(number)
			delete(inst.restoring, number)
		}
	}
	var commands []Command
	var again []int
	for _, number := range inst.numbers() {
		s := inst.slots[number]
		switch {
		case s.busy(): // its result follows
		case !inst.recorded:
			s.forgetRecord()
		default:
			report, reclaim := m.takeOver(inst, number, inst.usage[number], before)
			commands = append(commands, report...)
			if reclaim {
				again = append(again, number)
			}
		}
	}
	m.changed(inst)
	if len(again) > 0 {
		commands = append(commands, m.rewrite(inst, again)...)
	}
	return commands
}

// takeOver sets the owner of one slot from the record. A slot that is free in the
// record although a container of this node has it is claimed again. So is a slot of a
// local device that names this node through the other resource. It reports whether a
// claim is due. before is the version that was known before the record.
func (m *Machine) takeOver(inst *instance, number int, owner v0.Owner, before uint64) (report []Command, reclaim bool) {
	s := inst.slots[number]
	if s.assumed && owner.Node == m.node {
		s.hold(owner, true) // the former record was out of date
	}
	switch {
	case !s.held.Free() && (owner.Free() || !inst.shared && owner.Node == m.node && owner != s.held):
		late := s.uncertainRelease > 0 || s.released > 0 && before <= s.released // a release of this node may have emptied it
		if owner.Free() && s.owner == s.held && !s.unrecorded && !s.assumed && !late {
			report = []Command{Restore{Ref{inst.name, number}}}
		}
		s.owner, s.unrecorded, s.uncertainRelease = s.held, true, 0
		s.conflicting, s.reported = false, false
		return report, inst.claimAt(number, s) <= m.now
	case !owner.Free() && !s.held.Free() && owner != s.held:
		return m.conflict(inst, number, owner), false
	}
	claimed := s.want == owner && s.sent > 0 // it was free when this agent claimed it
	if owner.Node == m.node && s.owner != owner && !claimed {
		// An earlier agent of this node has claimed the slot, or given it to a container
		// just before this one started. So a container may have it until an observation,
		// and the earlier agent's release may still reach the API server, at any version.
		s.hold(owner, true)
		s.asked, s.uncertainRelease, s.released = m.now, math.MaxUint64, inst.version
		if owner.VirtualID == "" && m.early[inst.use(number, owner)] {
			s.prove()
		}
	}
	if owner.Node != m.node {
		s.uncertainRelease = 0
	}
	if owner != s.owner {
		s.superseded = false // only the former owner's virtual ID has another slot
	}
	s.owner, s.unrecorded = owner, false
	s.conflicting, s.reported = false, false
	return nil, false
}

// conflict marks a slot that a container of this node has although the record names
// another owner. The slot stays unhealthy until a user corrects the record.
func (m *Machine) conflict(inst *instance, number int, owner v0.Owner) []Command {
	s := inst.slots[number]
	known := s.conflicting && s.reported && s.owner == owner
	s.owner, s.unrecorded, s.conflicting, s.reported = owner, false, true, !s.assumed
	m.changed(inst)
	if known || s.assumed {
		return nil
	}
	what := fmt.Sprintf("a container of node %s has the slot, but the record names %q", m.node, owner)
	if s.held.VirtualID != "" {
		what = fmt.Sprintf("a container of node %s has the slot as %q, but the record names %q", m.node, s.held, owner)
	}
	return []Command{Report{Ref{inst.name, number}, what}}
}

// settle ends the patches of slots. It returns the version of the Instance that was
// known when they were sent.
func (m *Machine) settle(inst *instance, numbers []int, patch phase) (sent uint64) {
	for _, number := range numbers {
		if s := inst.slots[number]; s != nil && s.phase == patch {
			s.phase, sent = settled, s.sent
			m.touch(s)
			if inst.group != nil {
				inst.group.touch(m.virtualIDs(s), m.generation)
			}
		}
	}
	return sent
}

// maxOlder is how many consecutive responses with an old version are ignored.
const maxOlder = 2

// believe adopts the record of a response. A response to a request that was sent when a
// later version was already known shows that versions have gone back: a backup of etcd
// was restored. After several such responses, the record counts all the same.
func (m *Machine) believe(inst *instance, record *Record, sent uint64) []Command {
	switch {
	case record == nil:
	case record.Version >= sent:
		inst.older = 0
	case inst.older < maxOlder:
		inst.older++
	default:
		inst.older, inst.version = 0, record.Version
	}
	return m.record(inst, record)
}
