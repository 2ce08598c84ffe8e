package deviceplugin

import (
	"maps"
	"slices"
	"strings"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// check verifies the invariants.
func (c *cluster) check() {
	users := map[string]int{}     // by Instance
	holder := map[string]string{} // by slot, of the Instances' resources
	for _, n := range c.nodes {
		for _, container := range n.kubelet.holders() {
			c.checkRecord(n, container)
			if container.resource == v0.ResourceName(group) {
				for _, instance := range container.devices {
					users[instance]++
				}
				continue
			}
			users[container.devices[0]] += len(container.ids)
			for _, id := range container.ids {
				if other := holder[id]; other != "" {
					c.violation("I1 %s: containers of %s and %s have the slot", id, other, n.name)
				}
				holder[id] = n.name
			}
		}
		if n.agent == nil {
			continue
		}
		for _, violation := range slots.Check(n.agent.state()) {
			c.violation("%s: %v", n.name, violation)
		}
	}
	for instance, count := range users {
		if capacity := int(c.configuration.Spec.Capacity); count > capacity {
			c.violation("I3 %s: containers have %d slots, the capacity is %d", instance, count, capacity)
		}
	}
}

// checkRecord verifies that the record names the user of each slot.
func (c *cluster) checkRecord(n *memoryNode, container memoryContainer) {
	if container.resource != v0.ResourceName(group) {
		for _, id := range container.ids {
			if owner := c.api.usage(container.devices[0])[id]; string(owner) != n.name {
				c.violation("I2 %s: a container of %s has the slot, but the record says %q", id, n.name, owner)
			}
		}
		return
	}
	for _, instance := range container.devices {
		usage := c.api.usage(instance)
		if !slices.ContainsFunc(slices.Collect(maps.Values(usage)), func(owner v0.SlotOwner) bool {
			return slices.Contains(container.ids, strings.TrimSuffix(strings.TrimPrefix(string(owner), "C:"), ":"+n.name))
		}) {
			c.violation("I2 %s: a container of %s has a slot through the ids %v, but the record says %v", instance, n.name, container.ids, usage)
		}
	}
}

// checkConflict is called with each Event that reports a conflict. Nobody edits the record.
func (c *cluster) checkConflict(event string) {
	c.violation("I1 an agent reports a conflict: %s", event)
}

// drain ends all Pods without further faults. All slots must then become free, and be
// available to all nodes.
func (c *cluster) drain() {
	for _, n := range c.nodes {
		n.link.set(false, false)
		if n.agent == nil {
			n.start()
		}
		for _, d := range c.devices {
			n.see(d, true, true)
		}
	}
	c.admitting.Wait()
	time.Sleep(maxRewatch)
	c.check()
	for _, n := range c.nodes {
		for _, pod := range n.kubelet.live() {
			n.kubelet.end(pod, true)
		}
	}
	time.Sleep(maxRelease)
	for _, d := range c.devices {
		for slot, owner := range c.api.usage(d.name) {
			if owner != "" {
				c.violation("I7 %s: still owned by %q %v after all pods ended", slot, owner, maxRelease)
			}
		}
	}
	for _, n := range c.nodes {
		c.checkAvailable(n, group)
		for _, d := range c.devices {
			c.checkAvailable(n, d.name)
		}
	}
	c.check()
}

// checkAvailable verifies that a node admits a Pod that requests a resource.
func (c *cluster) checkAvailable(n *memoryNode, name string) {
	pod := newMemoryPod(n.name+"-last-"+name, v0.ResourceName(name), 1, false)
	if !n.kubelet.admit(pod, v0.ResourceName(name), 1) {
		c.violation("%s: a pod is not admitted although all slots of %s are free: %v; %+v", n.name, name, n.kubelet.lists(), n.agent.state())
	}
	n.kubelet.end(pod, true)
	time.Sleep(maxRelease)
}
