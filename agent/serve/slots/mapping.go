package slots

import (
	"cmp"
	"slices"
	"strconv"
)

// plan chooses a slot for each ID of a group's call: slots of different Instances. An ID
// in use keeps its slot. Another one takes the Instance with most available slots. If
// two IDs in use have slots of one Instance, one of them is remapped. The kubelet names
// only IDs whose container has terminated, or those of an earlier container of the same Pod,
// so the ID that was answered last keeps its slot. The other's former slot stays owned
// until an observation.
//
// It returns wait if a patch in flight may make a slot available. What was chosen before
// stays, unless the others would then get no slot.
func (m *Machine) plan(g *group, c *pendingCall) (targets []Ref, wait bool, err error) {
	targets, wait, err = m.choose(g, c, c.targets)
	if err != nil && !wait && c.targets != nil {
		return m.choose(g, c, nil)
	}
	return targets, wait, err
}

// choose plans with the slots that were chosen before, or without if chosen is nil.
func (m *Machine) choose(g *group, c *pendingCall, chosen []Ref) (targets []Ref, wait bool, err error) {
	targets = make([]Ref, len(c.ids))
	used := map[string]bool{}
	assign := func(i int, ref Ref) {
		targets[i] = ref
		used[ref.Instance] = true
	}
	var rest []int
	for _, i := range m.byAge(g, c) {
		ref, s, found := m.keepable(g, c, chosen, i)
		switch {
		case !found:
			rest = append(rest, i)
		case !used[ref.Instance]:
			assign(i, ref)
		case m.recent(s): // its container may be running, in the same Pod
			return nil, false, ErrTooFew
		default:
			rest = append(rest, i)
		}
	}
	slices.Sort(rest)
	for _, i := range rest {
		ref, found := g.pick(used)
		if !found {
			return nil, m.pending(g, used), m.shortage(g, used)
		}
		assign(i, ref)
	}
	return targets, false, nil
}

// byAge returns the indexes of a call's IDs, those that were answered last first.
func (m *Machine) byAge(g *group, c *pendingCall) []int {
	order := make([]int, len(c.ids))
	answered := make([]int64, len(c.ids))
	for i, id := range c.ids {
		order[i], answered[i] = i, int64(never)
		if _, s, found := g.current(strconv.Itoa(id)); found {
			answered[i] = int64(s.answered)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(answered[b], answered[a]), cmp.Compare(c.ids[a], c.ids[b]))
	})
	return order
}

// recent reports whether a slot was given to a container so recently that it may be an
// earlier container of the same Pod.
func (m *Machine) recent(s *slot) bool {
	return !s.held.Free() && m.now-s.answered < SettleTime
}

// keepable returns the slot that an ID of a call has or was chosen for, if the container
// can have it.
func (m *Machine) keepable(g *group, c *pendingCall, chosen []Ref, i int) (Ref, *slot, bool) {
	owner := m.owner(c.resource, c.ids[i])
	if chosen != nil {
		ref := chosen[i]
		if inst := g.instances[ref.Instance]; inst != nil {
			s := inst.slots[ref.Slot]
			switch {
			case s == nil:
			case s.owner() == owner && inst.ready(ref.Slot, s), s.want() == owner:
				return ref, s, true
			case inst.online && inst.usable(ref.Slot, s) && inst.available > 0:
				return ref, s, true
			}
		}
	}
	for _, owned := range [...]bool{true, false} { // a slot that is still being claimed comes last
		for _, ref := range g.slotsOf(owner.VirtualID) {
			s := g.virtual[owner.VirtualID].slots[ref]
			if (s.owner() == owner) != owned {
				continue
			}
			has := (owned || s.want() == owner) && !s.ending()
			// While the device is offline, the ID is unhealthy: the kubelet names it only for a
			// later container of the same Pod. That one gets the slot also if the device has gone.
			if has && g.instances[ref.Instance].ready(ref.Slot, s) || s.held == owner && m.recent(s) {
				return ref, s, true
			}
		}
	}
	return Ref{}, nil, false
}

// pick returns the available slot that this node prefers, of the Instance that has most of them
// and is not used.
func (g *group) pick(used map[string]bool) (Ref, bool) {
	var best *instance
	for name, inst := range g.offering {
		if used[name] {
			continue
		}
		if best == nil || inst.available > best.available || inst.available == best.available && name < best.name {
			best = inst
		}
	}
	if best == nil {
		return Ref{}, false
	}
	first, found := Ref{best.name, 0}, false
	for number, s := range best.slots {
		if best.usable(number, s) && (!found || best.turn(number) < best.turn(first.Slot)) {
			first.Slot, found = number, true
		}
	}
	return first, found
}

// pending reports whether a patch in flight may make a slot of another Instance
// available.
func (m *Machine) pending(g *group, used map[string]bool) bool {
	for name, inst := range g.members {
		if used[name] || !inst.online {
			continue
		}
		for _, s := range inst.slots {
			if s.busy() {
				return true
			}
		}
	}
	return false
}

// shortage returns why no further Instance has a slot.
func (m *Machine) shortage(g *group, used map[string]bool) error {
	if len(g.members) == 0 {
		return ErrGone
	}
	for name, inst := range g.members {
		if !used[name] && inst.suspended() {
			return ErrUnavailable
		}
	}
	return ErrTooFew
}
