package deviceplugin

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/serve/claims"
	v0 "akri.sh/akri/api/v0"
)

const (
	// proofTime is how long nobody may give a slot of an Instance that was created again.
	proofTime = 5 * time.Second
	// troubleTime bounds the time until an agent that starts knows what its containers have.
	troubleTime = 20 * time.Second
	// noticeTime bounds the time until an agent knows an edit, and the next check.
	noticeTime = maxLag + 4*time.Second
	// writeTime bounds the time until an owner is written, if that is not a condition for
	// giving the slot: that of a local device, and one that users have removed.
	writeTime = 12 * time.Second
)

// history is what users have done to an Instance.
type history struct {
	edited  map[string]time.Time // when an owner was changed, by slot; "" for that of an ID
	version uint64               // of the Instance after the last edit
	removed time.Time            // when the Instance was last deleted
	// lost is when an agent was last troubled within writeTime of that: containers that the
	// kubelet does not show yet may have lost their slots.
	lost time.Time
	// capacity is the last that was seen, and agreed since when all agents know it and all
	// owners are written; zero while that is not so.
	capacity int
	agreed   time.Time
	// maxUsers and maxOwners are how many containers may have a slot, and slots an owner,
	// because the capacity was larger.
	maxUsers, maxOwners int
}

// disagree records that more slots may have owners than the capacity says.
func (h *history) disagree() { h.agreed, h.maxOwners = time.Time{}, maxSlot }

// slotUse is a slot that a container has, through one of some owners.
type slotUse struct {
	instance string
	slot     string // empty if only the record knows it
	owners   []v0.SlotOwner
}

// uses returns the slots that a container has.
func (c *memoryContainer) uses(node string) []slotUse {
	var all []slotUse
	if c.resource == v0.ResourceName(group) {
		var owners []v0.SlotOwner
		for _, id := range c.ids {
			owners = append(owners, v0.SlotOwner(v0.Owner{Node: node, VirtualID: id}.String()))
		}
		for _, instance := range c.devices {
			all = append(all, slotUse{instance: instance, owners: owners})
		}
		return all
	}
	for _, id := range c.ids {
		all = append(all, slotUse{instance: c.devices[0], slot: id, owners: []v0.SlotOwner{v0.SlotOwner(node)}})
	}
	return all
}

// recorded returns the slot that the record gives to a container, or "".
func (c *cluster) recorded(u slotUse) string {
	for slot, owner := range c.api.usage(u.instance) {
		if (u.slot == "" || u.slot == slot) && slices.Contains(u.owners, owner) {
			return slot
		}
	}
	return ""
}

// check verifies the invariants.
func (c *cluster) check() {
	users := map[string]map[string]bool{} // slots in use, by Instance
	holder := map[string]string{}         // node by slot
	unwritten := map[string]int{}         // slots in use without their owner, by Instance
	c.noteTrouble()
	for _, n := range c.nodes {
		for _, container := range n.kubelet.holders() {
			for i, u := range container.uses(n.name) {
				slot := cmp.Or(c.recorded(u), u.slot)
				if c.recorded(u) == "" {
					unwritten[u.instance]++
				}
				c.excuse(n, container, u)
				if container.excused[cmp.Or(u.slot, u.instance)] {
					c.api.count(excused)
					continue
				}
				c.api.count(judged)
				c.checkRecord(n, container, u)
				slot = cmp.Or(slot, fmt.Sprint(u.instance, " on ", n.name, " ", container.ids[i]))
				if users[u.instance] == nil {
					users[u.instance] = map[string]bool{}
				}
				users[u.instance][slot] = true
				if other := cmp.Or(holder[slot], n.name); other != n.name {
					c.violation("I1 %s: containers of %s and %s have the slot", slot, other, n.name)
				}
				holder[slot] = n.name
			}
			container.checked = true
		}
	}
	for _, d := range c.devices {
		c.checkCapacity(d.name, len(users[d.name]), unwritten[d.name])
	}
}

// noteTrouble records what excuses violations that are noticed later.
func (c *cluster) noteTrouble() {
	for _, n := range c.nodes {
		if n.troubled() {
			n.troubledAt = time.Now()
		}
	}
	for instance, h := range c.histories {
		if time.Since(h.removed) <= writeTime && c.anyTrouble(instance) {
			h.lost = time.Now()
		}
	}
}

// checkRecord verifies that the record names the user of a slot (I2).
func (c *cluster) checkRecord(n *memoryNode, container *memoryContainer, u slotUse) {
	if c.recorded(u) != "" {
		return
	}
	d, h := c.device(u.instance), c.history(u.instance)
	written := h.removed // since when the owner should be written again
	if !d.Shared {
		object := c.api.get(u.instance)
		if _, labelled := labelsOf(object)[v0.NodeLabel(n.name)]; !labelled {
			return
		}
		for _, other := range []time.Time{container.began, n.troubledAt, n.sawAt[u.instance]} {
			if other.After(written) {
				written = other
			}
		}
	}
	if (!d.Shared || container.began.Before(h.removed.Add(proofTime))) && time.Since(written) <= writeTime {
		return
	}
	c.violation("I2 %s %s: a container of %s has it through the ids %v since %v, but the record says %v",
		u.instance, u.slot, n.name, container.ids, time.Since(container.began), c.api.usage(u.instance))
}

func labelsOf(instance *v0.Instance) map[string]string {
	if instance == nil {
		return nil
	}
	return instance.Labels
}

// excuse accepts that a slot in use is used twice, until the container has terminated: if
// a user has changed its owner, or has deleted the Instance and an agent could not write
// the owner again, or could not know it, in time.
func (c *cluster) excuse(n *memoryNode, container *memoryContainer, u slotUse) {
	h, key := c.history(u.instance), cmp.Or(u.slot, u.instance)
	edited := !h.edited[u.slot].Before(container.began)
	if at, found := h.edited[u.slot]; found && !container.checked { // did the agent know the edit when it gave the slot?
		edited = edited || container.began.Before(at.Add(noticeTime)) || h.version > n.knows(u.instance)
	}
	unknown := container.began.Before(h.removed.Add(proofTime)) || !container.checked && n.troubled() // to the agent
	deleted := !h.removed.IsZero() && unknown && c.recorded(u) == "" && (c.anyTrouble(u.instance) || h.lost.After(container.began))
	if edited || deleted || c.forgotten(n, container, u) || n.overlooks(container) {
		container.excused[key] = true
	}
}

// overlooks reports whether an agent that has started may not have seen a container of a
// Pod that was deleted by force: a known limit, see docs/devices.md. A kubelet that has
// started does not show such a Pod at all.
func (n *memoryNode) overlooks(container *memoryContainer) bool {
	if !container.ghost || n.agent != nil && time.Since(n.agent.startedAt) > troubleTime && !n.kubelet.startedSince(container.began) {
		return false
	}
	n.c.edited.Store(true) // the slot may be given to another node
	return true
}

// forgotten reports whether only an agent that has ended knew which slot of a local device an
// ID has: it could not write that yet, a late release has removed it meanwhile (see the known
// limits of package slots), or the Instance was deleted because the device was gone.
func (c *cluster) forgotten(n *memoryNode, container *memoryContainer, u slotUse) bool {
	restarted := n.agent == nil || container.began.Before(n.agent.startedAt) && time.Since(n.agent.startedAt) < troubleTime
	if c.device(u.instance).Shared || u.slot != "" || c.recorded(u) != "" || !restarted {
		return false
	}
	c.edited.Store(true) // the ID is reported as a conflict
	return true
}

// knows returns the version of an Instance that a node's agent knows, or 0.
func (n *memoryNode) knows(instance string) uint64 {
	if n.agent == nil {
		return 0
	}
	object := n.agent.store.Get(types.NamespacedName{Namespace: "default", Name: instance})
	if object == nil {
		return 0
	}
	return claims.Version(object)
}

// troubled reports whether a fault keeps a node's agent from knowing or writing what it
// should, or has done so until a moment ago.
func (n *memoryNode) troubled() bool {
	return n.agent == nil || time.Since(n.agent.settledAt) < proofTime || n.link.troubled()
}

// anyTrouble reports whether a node is troubled, or does not watch an Instance.
func (c *cluster) anyTrouble(instance string) bool {
	object, h := c.api.get(instance), c.history(instance)
	return slices.ContainsFunc(c.nodes, func(n *memoryNode) bool {
		_, labelled := labelsOf(object)[v0.NodeLabel(n.name)]
		return n.troubled() || !n.seesNow(instance) || !labelled && time.Since(h.removed) >= proofTime
	})
}

// checkCapacity verifies that containers do not have too many slots of an Instance (I3),
// and that no slot gets an owner while as many as the capacity have one. An agent that does
// not know yet that the capacity was reduced is excused, and what it has given stays.
func (c *cluster) checkCapacity(instance string, users, unwritten int) {
	object, h := c.api.get(instance), c.history(instance)
	if object == nil {
		h.disagree()
		return
	}
	owners, capacity := 0, int(min(object.Spec.Capacity, c.configuration.Spec.Capacity))
	for _, owner := range object.Spec.DeviceUsage {
		if owner != "" {
			owners++
		}
	}
	agree := unwritten == 0 && !slices.ContainsFunc(c.nodes, func(n *memoryNode) bool {
		return n.agent == nil || n.agent.capacity(instance) > capacity
	})
	switch {
	case !agree || capacity < h.capacity:
		h.disagree()
		h.maxUsers = max(h.maxUsers, h.capacity, capacity)
	case h.agreed.IsZero():
		h.agreed = time.Now()
	case time.Since(h.agreed) > maxLate+maxCall: // no claim of before may still arrive
		h.maxOwners = min(h.maxOwners, max(owners, capacity))
		h.maxUsers = min(h.maxUsers, max(users, h.maxOwners)) // a slot that a node owns is given again
	}
	h.capacity = capacity
	if users > max(h.maxUsers, capacity) {
		c.violation("I3 %s: containers have %d slots, the capacity is %d", instance, users, capacity)
	}
	if !h.agreed.IsZero() && owners > max(h.maxOwners, capacity) {
		c.violation("I3 %s: %d slots have owners, the capacity is %d: %v", instance, owners, capacity, object.Spec.DeviceUsage)
	}
}

// checkConflict is called with each Event that reports a conflict. Only users cause them.
func (c *cluster) checkConflict(event string) {
	if !c.edited.Load() {
		c.violation("I1 an agent reports a conflict: %s", event)
	}
}
