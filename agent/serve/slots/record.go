package slots

import (
	"fmt"
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
			inst.awaited[number] = true
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
			inst.retry = retry{} // what failed before it was created again does not count
			inst.restoredAt = m.now + restoreTime
		}
		inst.recorded, inst.gone = true, false
		inst.version, inst.usage = record.Version, record.Usage
		inst.place = placeOf(m.node, record.Nodes)
		m.join(inst, record.Configuration)
	}
	for number, owner := range inst.usage {
		if !owner.Free() {
			inst.slot(number)
			delete(inst.awaited, number)
		}
	}
	var commands []Command
	var claims []int
	for _, number := range inst.numbers() {
		s := inst.slots[number]
		switch {
		case s.busy(): // its result follows
		case !inst.recorded:
			s.recorded, s.lateRelease = v0.Owner{}, 0
		default:
			state := s.state()
			commands = append(commands, m.takeOver(inst, number, inst.usage[number], before)...)
			if s.state() == unrecorded && (state != unrecorded || !inst.retry.failing) && !inst.othersFirst(number, s) {
				claims = append(claims, number)
			}
		}
	}
	m.changed(inst)
	return append(commands, m.rewrite(inst, claims)...)
}

// believe takes an older record over if it is the response to a request that was sent when a
// later version was known: a backup of etcd was restored. Otherwise, this node would write what
// it does not see again and again, until it is restarted.
func (i *instance) believe(record *Record, sent uint64) {
	if record != nil && record.Version < sent {
		i.version = record.Version
	}
}

// othersFirst reports whether only an old record says that a container has a slot, which another
// node owned when the Instance was deleted: that one goes first.
func (i *instance) othersFirst(number int, s *slot) bool { return i.awaited[number] && s.assumed }

// takeOver sets the owner of one slot from the record, and reports what somebody else has
// done to it. known is the version that was known before the record.
func (m *Machine) takeOver(inst *instance, number int, owner v0.Owner, known uint64) []Command {
	s := inst.slots[number]
	before, former := s.state(), s.owner()
	own := owner.Node == m.node
	if owner != former && (own || former.Node == m.node) {
		m.edits++
	}
	switch {
	case own && owner != former && (s.held.Free() || s.assumed):
		s.adopt(owner, m.now)
		if owner.VirtualID == "" && m.unmatched[inst.use(number, owner)] {
			s.prove(inst.version)
		}
	case own && !inst.shared && !s.held.Free() && owner != s.held:
		owner = v0.Owner{} // through the other resource: no other node is concerned, so this one corrects it
	case !own:
		s.boundRelease(inst.version)
	}
	s.recorded = owner
	if s.contested() != before.contested() {
		s.since = never
	}
	switch after := s.state(); {
	case after == unrecorded && before == inUse && !own && known > s.lateRelease: // no release has emptied it
		return []Command{Report{Slot: Ref{inst.name, number}}}
	case after == conflicting && (before != conflicting || owner != former):
		return []Command{m.conflict(inst, number)}
	case after != unrecorded && !after.contested() && owner != former:
		s.superseded = false // only the former owner's virtual ID has another slot
	}
	return nil
}

// conflict returns the report of a slot that is conflicting.
func (m *Machine) conflict(inst *instance, number int) Command {
	s := inst.slots[number]
	what := fmt.Sprintf("a container of node %s has the slot, but the record names %q", m.node, s.recorded)
	if s.held.VirtualID != "" {
		what = fmt.Sprintf("a container of node %s has the slot as %q, but the record names %q", m.node, s.held, s.recorded)
	}
	return Report{Ref{inst.name, number}, what}
}

// settle ends the patches of slots, after which [Machine.record] takes the record over. A
// slot that a claim has written, because it was free before, is not adopted then. settle
// returns the version of the Instance that was known when the patches were sent.
func (m *Machine) settle(inst *instance, numbers []int, kind patchKind, wrote bool) (sent uint64) {
	for _, number := range numbers {
		s := inst.slots[number]
		if s == nil || s.patch.kind != kind {
			continue
		}
		sent = s.patch.version
		if s.ending() || wrote && sent > 0 {
			s.recorded = s.patch.owner
		}
		ids := m.virtualIDs(s)
		s.patch = patch{}
		m.exclude(s)
		if inst.group != nil {
			inst.group.exclude(ids, m.generation)
		}
	}
	return sent
}
