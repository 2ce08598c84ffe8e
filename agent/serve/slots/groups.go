package slots

import (
	"maps"
	"slices"
	"strconv"

	v0 "akri.sh/akri/api/v0"
)

// group is the resource of a Configuration: it stands for all Instances of the
// Configuration on this node. Its list has the virtual IDs in use, and one more for
// each Instance with an available slot, so that the kubelet does not allocate more IDs
// than there are different devices.
type group struct {
	name string
	// instances are all Instances of the Configuration that the machine knows; members
	// those that are published, and offering those with an available slot.
	instances, members, offering map[string]*instance
	virtual                      map[string]*virtual
	// orphans are the IDs that a container has although no slot has them.
	orphans map[string]orphan
	list    *idList
}

// virtual is a virtual ID in use.
type virtual struct {
	// slots have the ID, or are being given it. There are several after a remapping,
	// until the former slot is released.
	slots map[Ref]*slot
	// current is the one that the next container with the ID gets.
	current Ref
}

func newGroup(name string) *group {
	return &group{
		name: name, instances: map[string]*instance{}, members: map[string]*instance{}, offering: map[string]*instance{},
		virtual: map[string]*virtual{}, orphans: map[string]orphan{}, list: newIDList(),
	}
}

// join makes an Instance part of the group of a Configuration.
func (m *Machine) join(inst *instance, configuration string) {
	if configuration == "" || inst.group != nil && inst.group.name == configuration {
		return
	}
	if inst.group != nil {
		m.quit(inst)
	}
	g := m.groups[configuration]
	if g == nil {
		g = newGroup(configuration)
		m.groups[configuration] = g
	}
	inst.group = g
	g.instances[inst.name] = inst
	g.update(inst, summary{})
}

// quit removes an Instance from its group.
func (m *Machine) quit(inst *instance) {
	g, current := inst.group, inst.summary
	inst.summary = summary{}
	g.update(inst, current)
	inst.summary, inst.group = current, nil
	delete(g.instances, inst.name)
	m.dirtyGroups[g.name] = g
}

// update applies the change of an Instance's summary. It reports whether that may change
// the group's list.
func (g *group) update(inst *instance, before summary) bool {
	if inst.sameVirtual(before) {
		return false
	}
	set(g.members, inst, inst.member)
	set(g.offering, inst, inst.offers)
	for number, ids := range before.virtual {
		for _, id := range ids {
			delete(g.virtual[id].slots, Ref{inst.name, number})
		}
	}
	for number, ids := range inst.virtual {
		for _, id := range ids {
			if g.virtual[id] == nil {
				g.virtual[id] = &virtual{slots: map[Ref]*slot{}}
			}
			g.virtual[id].slots[Ref{inst.name, number}] = inst.slots[number]
		}
	}
	for _, changed := range [...]map[int][]string{before.virtual, inst.virtual} {
		for _, ids := range changed {
			for _, id := range ids {
				g.choose(id)
			}
		}
	}
	return true
}

func set(of map[string]*instance, inst *instance, in bool) {
	if in {
		of[inst.name] = inst
	} else {
		delete(of, inst.name)
	}
}

// choose updates the current slot of an ID, and forgets an ID without slots.
func (g *group) choose(id string) {
	v := g.virtual[id]
	if v == nil || v.slots[v.current] != nil {
		return
	}
	if len(v.slots) == 0 {
		delete(g.virtual, id)
		return
	}
	refs := slices.SortedFunc(maps.Keys(v.slots), compareRefs)
	v.current = refs[0]
	for _, ref := range refs {
		if !v.slots[ref].superseded {
			v.current = ref
			break
		}
	}
	v.slots[v.current].superseded = false
}

// current returns the slot that the next container with an ID gets, if it has one.
func (g *group) current(id string) (Ref, *slot, bool) {
	v := g.virtual[id]
	if v == nil {
		return Ref{}, nil, false
	}
	return v.current, v.slots[v.current], true
}

// slotsOf returns the slots of an ID, the current one first.
func (g *group) slotsOf(id string) []Ref {
	v := g.virtual[id]
	if v == nil {
		return nil
	}
	others := slices.DeleteFunc(slices.SortedFunc(maps.Keys(v.slots), compareRefs), func(ref Ref) bool { return ref == v.current })
	return append([]Ref{v.current}, others...)
}

// exclude excludes IDs from observations that began earlier.
func (g *group) exclude(ids []string, to Generation) {
	for _, id := range ids {
		if number, ok := virtualNumber(id); ok && g.list.entries[number] != nil {
			g.list.entries[number].generation = to
		}
	}
}

// groupList returns the list of virtual IDs for the kubelet.
func (m *Machine) groupList(g *group) []Health {
	wanted := map[int]bool{}
	if len(g.members) > 0 {
		for id, v := range g.virtual {
			if number, ok := virtualNumber(id); ok {
				wanted[number] = g.instances[v.current.Instance].health[v.current.Slot]
			}
		}
		for id := range g.orphans {
			if number, ok := virtualNumber(id); ok && g.virtual[id] == nil {
				wanted[number] = false
			}
		}
		next := 0
		for range g.offering {
			for {
				if _, used := wanted[next]; !used {
					break
				}
				next++
			}
			wanted[next] = true
		}
	}
	return g.list.update(wanted, m.now, func(id int) bool { return m.groupKeeps(g, id) })
}

// groupKeeps reports whether an ID stays in the list of a group: it has a slot, or a
// call is in progress.
func (m *Machine) groupKeeps(g *group, id int) bool {
	return g.virtual[strconv.Itoa(id)] != nil || m.awaited(Resource{g.name, true})
}

// virtualNumber returns the number of a virtual ID. IDs of the original Akri may be
// other text; they are not listed, and end with their container.
func virtualNumber(id string) (int, bool) {
	number, err := strconv.Atoi(id)
	return number, err == nil && number >= 0 && strconv.Itoa(number) == id
}

// advertiseGroup returns the command for a group's list, and forgets a group that no
// longer has any state.
func (m *Machine) advertiseGroup(g *group) []Command {
	resource := Resource{g.name, true}
	commands := g.list.advertise(resource, m.groupList(g), len(g.members) > 0)
	m.schedule(resource, g.list.due(func(id int) bool { return m.groupKeeps(g, id) }))
	if len(g.instances) == 0 && g.list.advertised == nil {
		delete(m.groups, g.name)
	}
	return commands
}

// owner returns the owner of a slot that a container gets through a resource.
func (m *Machine) owner(r Resource, id int) v0.Owner {
	if r.Group {
		return v0.Owner{Node: m.node, VirtualID: strconv.Itoa(id)}
	}
	return v0.Owner{Node: m.node}
}
