package slots

import (
	"cmp"
	"slices"
	"strconv"
)

// Preference is the kubelet's request to choose among its available IDs of a resource.
type Preference struct {
	Resource  Resource
	Available []int
	// Must are chosen in any case, and Size is how many are needed with them.
	Must []int
	Size int
}

// Prefer chooses first the IDs in Must, then those that this node already owns, which
// cost no request, then free ones, in their turn. Of a group, it chooses IDs that
// map to different Instances, if there are enough. Those available stay listed for [Quiet].
func (m *Machine) Prefer(p Preference) []int {
	list := m.listOf(p.Resource)
	if list == nil {
		return nil
	}
	list.name(p.Available, m.now, m.generation)
	rest := slices.DeleteFunc(slices.Clone(p.Available), func(id int) bool { return slices.Contains(p.Must, id) })
	if p.Resource.Group {
		return m.preferGroup(m.groups[p.Resource.Name], p, rest)
	}
	return m.preferSlots(m.instances[p.Resource.Name], p, rest)
}

func (m *Machine) preferSlots(inst *instance, p Preference, rest []int) []int {
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(m.rank(inst, a), m.rank(inst, b)), cmp.Compare(inst.turn(a), inst.turn(b)), cmp.Compare(a, b))
	})
	return append(slices.Clone(p.Must), rest[:min(len(rest), max(0, p.Size-len(p.Must)))]...)
}

// place is the position of this node among those that see a device, by name.
type place struct{ index, of int }

func placeOf(node string, nodes []string) (p place) {
	p.of = len(nodes)
	for _, other := range nodes {
		if other < node {
			p.index++
		}
	}
	return p
}

// turn orders the free slots of a device for this node; the lowest comes first. Two nodes
// that choose the same at once cost a Pod. So each takes a share of its own, and then those
// of the nodes after it from the end. Two nodes with at least two slots meet only at the last
// free one; more nodes may meet before.
func (i *instance) turn(number int) int {
	if i.place.of == 0 || number >= i.capacity {
		return number
	}
	owner := ((number+1)*i.place.of - 1) / i.capacity // the share of node k begins at k*capacity/of
	distance := (owner - i.place.index + i.place.of) % i.place.of
	if distance == 0 {
		return number
	}
	return (distance+1)*i.capacity - number
}

// rank orders slots for a preference; the lowest rank comes first.
func (m *Machine) rank(inst *instance, number int) int {
	s := inst.slots[number]
	switch {
	case s == nil:
		return 3
	case s.owner() == m.owner(Resource{Name: inst.name}, number) && !inst.releaseUncertain(s) && !s.ending():
		return 0
	case s.free():
		return 1
	}
	return 2
}

// preferGroup orders the IDs of a Configuration's resource. First come those that have a
// slot of an Instance that the container does not have yet: nothing is written for them.
// Then come as many fresh IDs as there are further Instances with a free slot, because
// each fresh ID takes another Instance. What then remains would have to be remapped, or
// refused.
func (m *Machine) preferGroup(g *group, p Preference, rest []int) []int {
	slices.Sort(rest)
	chosen := slices.Clone(p.Must)
	used := map[string]bool{}
	mapped := func(id int) (*instance, bool) { // false: the ID takes any Instance
		ref, s, found := g.current(strconv.Itoa(id))
		if !found || s.ending() {
			return nil, false
		}
		inst := g.instances[ref.Instance]
		return inst, inst.ready(ref.Slot, s) && inst.online
	}
	unmapped := 0 // among Must
	for _, id := range p.Must {
		if inst, found := mapped(id); found {
			used[inst.name] = true
		} else {
			unmapped++
		}
	}
	var fresh, last []int
	for _, id := range rest {
		inst, found := mapped(id)
		switch {
		case !found:
			fresh = append(fresh, id)
		case len(chosen) < p.Size && !used[inst.name]:
			chosen = append(chosen, id)
			used[inst.name] = true
		default:
			last = append(last, id)
		}
	}
	different := -unmapped // Instances left for fresh IDs
	for name := range g.offering {
		if !used[name] {
			different++
		}
	}
	n := min(max(0, different), len(fresh))
	ordered := slices.Concat(fresh[:n], last, fresh[n:])
	return append(chosen, ordered[:min(len(ordered), max(0, p.Size-len(chosen)))]...)
}
