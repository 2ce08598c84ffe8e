package deviceplugin

import (
	"slices"
	"time"

	"akri.sh/akri/agent/serve/claims"
	v0 "akri.sh/akri/api/v0"
)

// maxSlot is above all slots of the schedules.
const maxSlot = 4

var (
	// foreignOwners are owners of no node of the schedules.
	foreignOwners = []v0.SlotOwner{"garbage::", "node-z", "C:0:node-z"}
	// userOwners are those that users write.
	userOwners = append([]v0.SlotOwner{"node-0", "node-1", "C:0:node-0", "C:7:node-1", "C:akri-0:node-0"}, foreignOwners...)
)

// remove deletes an Instance as a user does. The agents create it again, and Pods request
// it before all agents have written their nodes' owners.
func (c *cluster) remove(*memoryNode) {
	d := c.devices[c.random.IntN(len(c.devices))]
	c.edited.Store(true)
	h := c.history(d.name)
	h.removed = time.Now()
	h.disagree()
	c.noteTrouble()
	for _, n := range c.nodes {
		for range 2 {
			if d.reaches(n) {
				c.arrive(n, d.name, 1, c.upTo(c.maxPause()))
			}
		}
	}
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	if instance := c.api.objects[d.name]; instance != nil {
		c.api.remove(instance)
	}
}

// edit changes a slot's owner as a user does who knows no better: it removes the owner, or
// writes one if the slot is free.
func (c *cluster) edit(*memoryNode) {
	d := c.devices[c.random.IntN(len(c.devices))]
	slot, owner := v0.SlotName(d.name, c.random.IntN(maxSlot)), userOwners[c.random.IntN(len(userOwners))]
	if c.api.usage(d.name)[slot] != "" {
		owner = ""
	}
	parsed, err := v0.ParseOwner(string(owner))
	_, watched := labelsOf(c.api.get(d.name))[v0.NodeLabel(parsed.Node)]
	if owner == "" || err != nil || watched || slices.Contains(foreignOwners, owner) {
		c.own(d, slot, owner) // otherwise, nobody would free it
	}
}

// own writes an owner, or removes it. The user of the slot is excused from now on, as are
// those that may have it through an ID.
func (c *cluster) own(d memoryDevice, slot string, owner v0.SlotOwner) {
	before, parsed := c.api.usage(d.name)[slot], v0.Owner{}
	if before != "" {
		parsed, _ = v0.ParseOwner(string(before))
	}
	h := c.history(d.name)
	changed := c.api.edit(d.name, func(instance *v0.Instance) {
		if instance.Spec.DeviceUsage == nil {
			instance.Spec.DeviceUsage = map[string]v0.SlotOwner{}
		}
		instance.Spec.DeviceUsage[slot] = owner
	})
	if !changed {
		return
	}
	c.log.Debug("A user has edited an owner", "slot", slot, "before", before, "after", owner)
	c.edited.Store(true)
	h.edited[slot] = time.Now()
	h.disagree()
	if parsed.VirtualID != "" || !d.Shared {
		h.edited[""] = time.Now()
	}
	if instance := c.api.get(d.name); instance != nil {
		h.version = claims.Version(instance)
	}
}

// resize edits the capacity as users do: that of the Configuration, which the agents learn
// at different times, or that of an Instance, which its author corrects.
func (c *cluster) resize(*memoryNode) {
	capacity, before := 1+c.random.Int32N(3), c.configuration.Spec.Capacity
	for _, d := range c.devices {
		h := c.history(d.name)
		h.maxUsers = max(h.maxUsers, int(before))
		h.disagree()
	}
	if c.random.IntN(3) == 0 {
		d := c.devices[c.random.IntN(len(c.devices))]
		c.api.edit(d.name, func(instance *v0.Instance) { instance.Spec.Capacity = capacity })
		return
	}
	latest := newMemoryConfiguration(capacity)
	latest.Generation = c.configuration.Generation + 1
	c.configuration = latest
	c.log.Debug("A user has edited the Configuration", "capacity", capacity)
	for _, n := range c.nodes {
		delay := c.upTo(time.Second)
		c.late.Go(func() {
			for time.Sleep(delay); n.link.isDown(); {
				time.Sleep(time.Second)
			}
			n.learn(latest)
			n.touch()
		})
	}
}
