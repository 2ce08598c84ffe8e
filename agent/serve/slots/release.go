package slots

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

func (e PodsObserved) apply(m *Machine) []Command {
	m.lingering, m.early = e.Lingering, map[Use]bool{}
	o := observation{PodsObserved: e, m: m, listed: map[Use]bool{}, claims: map[string][]int{}, releases: map[string][]int{}}
	for _, use := range e.Listed {
		o.listed[use] = true
	}
	var commands []Command
	for _, use := range e.Listed {
		commands = append(commands, o.confirm(use)...)
	}
	commands = append(commands, o.confirmOrphans()...)
	for _, name := range slices.Sorted(maps.Keys(m.holding)) {
		o.end(m.holding[name])
	}
	for _, name := range slices.Sorted(maps.Keys(o.claims)) {
		commands = append(commands, m.rewrite(m.instances[name], o.claims[name])...)
	}
	for _, name := range slices.Sorted(maps.Keys(o.releases)) {
		commands = append(commands, m.release(m.instances[name], o.releases[name]))
	}
	for _, c := range slices.Clone(m.waiting) { // for what was not accounted for
		commands = append(commands, m.retry(c)...)
	}
	return commands
}

// observation is the state of applying one [PodsObserved].
type observation struct {
	PodsObserved
	m                *Machine
	listed           map[Use]bool
	claims, releases map[string][]int
}

// confirm records that a container has the slots of an ID.
func (o *observation) confirm(use Use) []Command {
	number, err := v0.ParseSlotName(use.Resource, use.ID)
	switch inst := o.m.instances[use.Resource]; {
	case err != nil:
	case inst == nil || inst.slots[number] == nil && !inst.recorded:
		o.m.early[use] = true
	default:
		return o.hold(inst, number, v0.Owner{Node: o.m.node})
	}
	g := o.m.groups[use.Resource]
	if g == nil || g.virtual[use.ID] == nil {
		return nil
	}
	owner := v0.Owner{Node: o.m.node, VirtualID: use.ID}
	var recorded, other []Ref
	for ref, s := range g.virtual[use.ID].slots {
		switch {
		case s.superseded:
		case s.owner == owner:
			recorded = append(recorded, ref)
		default:
			other = append(other, ref)
		}
	}
	if len(recorded) == 0 { // the record of the container's slot names another owner
		recorded = other
	}
	free := func(ref Ref) bool { return g.virtual[use.ID].slots[ref].held.Free() }
	if slices.ContainsFunc(recorded, func(ref Ref) bool { return !free(ref) }) {
		// The container has a slot that it is known to have. No container has the others:
		// their release was not confirmed.
		for _, ref := range recorded {
			if s := g.virtual[use.ID].slots[ref]; free(ref) && o.applies(g.instances[ref.Instance], ref.Slot, s) {
				s.superseded = true
			}
		}
		recorded = slices.DeleteFunc(recorded, free)
	}
	slices.SortFunc(recorded, compareRefs)
	var commands []Command
	for _, ref := range recorded {
		commands = append(commands, o.hold(g.instances[ref.Instance], ref.Slot, owner)...)
	}
	return commands
}

// hold records that a container has a slot.
func (o *observation) hold(inst *instance, number int, owner v0.Owner) []Command {
	s := inst.slot(number)
	if !o.applies(inst, number, s) {
		return nil
	}
	known := s.held == owner && !s.assumed
	s.hold(owner, s.assumed)
	if contradicted := !s.free() && s.owner != owner; contradicted != s.contradicted || s.since == never {
		s.contradicted, s.since = contradicted, o.m.now
	}
	certain := o.m.now-s.since >= reportDelay
	switch {
	case s.owner == owner:
		// A virtual ID does not name the slot: the record may still be out of date.
		if owner.VirtualID == "" || certain {
			s.prove()
		}
	case s.free():
		s.owner, s.unrecorded = owner, true
		if inst.recorded {
			o.claims[inst.name] = append(o.claims[inst.name], number)
		}
	default:
		s.assumed = !known && !certain
		if owner.VirtualID == "" {
			o.m.early[inst.use(number, owner)] = true
		}
		return o.m.conflict(inst, number, s.owner)
	}
	o.m.changed(inst)
	return nil
}

// applies reports whether an observation says something about a slot. It does not while
// a patch is in flight or a call waits for the slot, or if a call named the slot after
// the observation began.
func (o *observation) applies(inst *instance, number int, s *slot) bool {
	return !s.busy() && s.touched <= o.Since && !o.m.targeted(Ref{inst.name, number}, nil)
}

// end releases the slots of an Instance that no container has any more.
func (o *observation) end(inst *instance) {
	changed := false
	for _, number := range inst.numbers() {
		s := inst.slots[number]
		if !o.ended(inst, number, s) {
			continue
		}
		changed = true
		s.hold(v0.Owner{}, false)
		s.conflicting, s.reported = false, false
		switch {
		case s.owner.Node != o.m.node:
		case !inst.recorded:
			s.owner, s.unrecorded = v0.Owner{}, false
		default:
			o.releases[inst.name] = append(o.releases[inst.name], number)
		}
	}
	if changed {
		o.m.changed(inst)
	}
}

// ended reports whether no container has a slot of this node. The kubelet assigns a slot
// only after the answer, so an answer just before the observation counts as a use.
func (o *observation) ended(inst *instance, number int, s *slot) bool {
	owner := s.held
	if owner.Free() {
		owner = s.owner
	}
	if owner.Node != o.m.node || !o.applies(inst, number, s) || o.Began-s.asked < SettleTime {
		return false
	}
	use := inst.use(number, owner)
	if use.Resource == "" || slices.Contains(o.Open, use.Resource) {
		return false
	}
	return s.superseded || !o.listed[use]
}

// reportDelay is how long observations contradict the records before that is reported.
// After the start of an agent, its cache may be out of date.
const reportDelay = 5 * time.Second

// orphan is since when a container has had an ID without a slot, and whether that was
// reported, after reportDelay.
type orphan struct {
	since    time.Duration
	reported bool
}

// confirmOrphans records the virtual IDs that a container has although no slot has them.
// They are not given to another container.
func (o *observation) confirmOrphans() []Command {
	var commands []Command
	orphans := map[string]map[string]orphan{}
	for _, use := range o.Listed {
		g := o.m.groups[use.Resource]
		number, numeric := virtualNumber(use.ID)
		if g == nil || !numeric || g.virtual[use.ID] != nil {
			continue
		}
		if e := g.roster.entries[number]; e != nil && e.touched > o.Since {
			continue
		}
		if orphans[g.name] == nil {
			orphans[g.name] = map[string]orphan{}
		}
		found, again := g.orphans[use.ID]
		if !again {
			found.since = o.m.now
		}
		due := !found.reported && o.m.now-found.since >= reportDelay
		found.reported = found.reported || due
		orphans[g.name][use.ID] = found
		if due {
			what := fmt.Sprintf("a container of node %s has the ID %s of the Configuration's resource, but no record names it", o.m.node, use.ID)
			commands = append(commands, Report{Ref{g.name, number}, what})
		}
	}
	for name, g := range o.m.groups {
		if len(g.orphans) == 0 && len(orphans[name]) == 0 {
			continue
		}
		if !slices.Contains(o.Open, name) { // otherwise, the list may lack some
			clear(g.orphans)
		}
		maps.Copy(g.orphans, orphans[name])
		o.m.touchedGroups[name] = g
	}
	return commands
}

// release marks slots as releasing and returns the command. Unrecorded slots need the
// patch too, because a claim may be in flight.
func (m *Machine) release(inst *instance, numbers []int) Command {
	owners := map[int]v0.Owner{}
	for _, number := range numbers {
		s := inst.slots[number]
		s.phase, s.unrecorded, s.sent = releasing, false, inst.version
		owners[number] = s.owner
	}
	m.changed(inst)
	return Release{inst.name, owners}
}

func (e ReleaseSettled) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	sent := m.settle(inst, e.Slots, releasing)
	if e.Gone && !inst.recordedAfter(sent) {
		return append(m.deleted(inst), m.resume(inst)...)
	}
	for _, number := range e.Slots {
		s := inst.slots[number]
		if s != nil && e.Outcome == Unknown {
			s.uncertainRelease, s.released = max(s.uncertainRelease, e.Tried), max(s.released, e.Tried)
		}
		if s != nil && e.Outcome != Written {
			m.postpone(inst, number)
		}
	}
	if e.Outcome == Written {
		m.hasten(inst)
	}
	commands := m.believe(inst, e.Record, sent)
	failed := slices.ContainsFunc(e.Slots, func(number int) bool {
		s := inst.slots[number]
		return s != nil && s.owner.Node == m.node && m.targeted(Ref{inst.name, number}, nil)
	})
	if failed && e.Outcome != Written {
		m.suspend(inst)
	}
	return append(commands, m.resume(inst)...)
}
