package slots

import (
	"fmt"
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

func (e PodsObserved) apply(m *Machine) []Command {
	m.unaccounted, m.unmatched = e.Unaccounted, map[Use]bool{}
	o := observation{PodsObserved: e, m: m, listed: map[Use]bool{}, claims: map[string][]int{}}
	for _, use := range e.Listed {
		o.listed[use] = true
	}
	var commands []Command
	for _, use := range e.Listed {
		commands = append(commands, o.confirm(use)...)
	}
	commands = append(commands, o.confirmOrphans()...)
	var releases []Command
	for _, name := range slices.Sorted(maps.Keys(m.instances)) {
		if inst := m.instances[name]; inst.own {
			releases = append(releases, o.end(inst)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.claims)) {
		commands = append(commands, m.rewrite(m.instances[name], o.claims[name])...)
	}
	commands = append(commands, releases...)
	for _, c := range slices.Clone(m.waiting) { // for what was not accounted for
		commands = append(commands, m.retry(c)...)
	}
	return commands
}

// observation is the state of applying one [PodsObserved].
type observation struct {
	PodsObserved
	m      *Machine
	listed map[Use]bool
	claims map[string][]int
}

// confirm records that a container has the slots of an ID.
func (o *observation) confirm(use Use) []Command {
	number, err := v0.ParseSlotName(use.Resource, use.ID)
	switch inst := o.m.instances[use.Resource]; {
	case err != nil:
	case inst == nil || inst.slots[number] == nil && !inst.recorded:
		o.m.unmatched[use] = true
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
		case s.owner() == owner:
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
	before := s.state()
	known := s.held == owner && !s.assumed
	s.hold(owner, s.assumed)
	after := s.state()
	if s.since == never || after.contested() != before.contested() {
		s.since = o.m.now
	}
	certain := o.m.now-s.since >= reportDelay
	switch {
	case after.contested():
		s.assumed = !known && !certain
		if owner.VirtualID == "" {
			o.m.unmatched[inst.use(number, owner)] = true
		}
	case owner.VirtualID == "" || certain: // a virtual ID does not name the slot: the record may still be out of date
		s.prove(inst.version)
	}
	if before == free && inst.recorded {
		o.claims[inst.name] = append(o.claims[inst.name], number)
	}
	o.m.changed(inst)
	if s.state() == conflicting && before != conflicting {
		return []Command{o.m.conflict(inst, number)}
	}
	return nil
}

// applies reports whether an observation says something about a slot. It does not while
// a patch is in flight or a call waits for the slot, or if a call named the slot after
// the observation began.
func (o *observation) applies(inst *instance, number int, s *slot) bool {
	return !s.busy() && s.generation <= o.Since && !o.m.targeted(Ref{inst.name, number}, nil)
}

// end releases the slots of an Instance that no container has any more.
func (o *observation) end(inst *instance) []Command {
	changed, releases := false, map[int]v0.Owner{}
	for _, number := range inst.numbers() {
		s := inst.slots[number]
		if !o.ended(inst, number, s) {
			continue
		}
		changed = true
		if owner := s.owner(); owner.Node == o.m.node && inst.recorded {
			releases[number] = owner
		}
		s.hold(v0.Owner{}, false)
	}
	if len(releases) > 0 {
		return []Command{o.m.release(inst, releases)}
	}
	if changed {
		o.m.changed(inst)
	}
	return nil
}

// ended reports whether no container has a slot of this node. The kubelet assigns a slot
// only after the answer, so an answer just before the observation counts as a use.
func (o *observation) ended(inst *instance, number int, s *slot) bool {
	owner := s.held
	if owner.Free() {
		owner = s.recorded
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
		if e := g.list.entries[number]; e != nil && e.generation > o.Since {
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
		o.m.dirtyGroups[name] = g
	}
	return commands
}

// release returns the command that removes owners, because no container has the slots. The
// record need not name the owner of a slot that was unrecorded: a claim may be in flight.
func (m *Machine) release(inst *instance, owners map[int]v0.Owner) Command {
	for number, owner := range owners {
		inst.slots[number].patch = patch{releasing, owner, inst.version}
	}
	m.changed(inst)
	return Release{inst.name, owners}
}

func (e ReleaseSettled) apply(m *Machine) []Command {
	inst := m.instances[e.Instance]
	if inst == nil {
		return nil
	}
	sent := m.settle(inst, e.Slots, releasing, false)
	inst.believe(e.Record, sent)
	if e.Gone && !inst.recordedAfter(sent) {
		return append(m.deleted(inst), m.resume(inst)...)
	}
	for _, number := range e.Slots {
		s := inst.slots[number]
		if s != nil && e.Outcome == Unknown {
			s.lateRelease = max(s.lateRelease, e.Tried)
		}
	}
	if e.Outcome == Written {
		m.recovered(inst)
	} else if inst.held(e.Slots) {
		m.suspend(inst)
	}
	commands := m.record(inst, e.Record)
	failed := slices.ContainsFunc(e.Slots, func(number int) bool {
		s := inst.slots[number]
		return s != nil && s.owner().Node == m.node && m.targeted(Ref{inst.name, number}, nil)
	})
	if failed && e.Outcome != Written {
		m.suspend(inst)
	}
	return append(commands, m.resume(inst)...)
}
