package deviceplugin

import (
	"maps"
	"slices"
	"time"

	v0 "akri.sh/akri/api/v0"
)

// drain ends all Pods without further faults. All slots must then become free, and be
// available to all nodes. In half of the schedules, nodes that have left a device join it
// only after that: an agent that starts must find the slots that it has to release.
func (c *cluster) drain() {
	c.calm()
	if c.random.IntN(2) == 0 {
		c.joinAll()
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
	c.checkFree()
	c.joinAll()
	time.Sleep(maxRewatch)
	for _, n := range c.nodes {
		if slices.ContainsFunc(c.devices, func(d memoryDevice) bool { return d.reaches(n) }) {
			c.checkAvailable(n, group)
		}
		for _, d := range c.devices {
			if d.reaches(n) {
				c.checkAvailable(n, d.name)
			}
		}
	}
	c.check()
}

// checkFree verifies that no slot has an owner.
func (c *cluster) checkFree() {
	for _, d := range c.devices {
		for slot, owner := range c.api.usage(d.name) {
			if owner != "" {
				c.violation("I7 %s: still owned by %q %v after all pods ended; nodes with the label: %v",
					slot, owner, maxRelease, slices.Collect(maps.Keys(labelsOf(c.api.get(d.name)))))
			}
		}
	}
}

// calm ends all faults, and corrects what users have done.
func (c *cluster) calm() {
	for _, n := range c.nodes {
		n.link.set(false, false)
		if n.agent == nil {
			n.start()
		}
	}
	for _, d := range c.devices {
		for slot, owner := range c.api.usage(d.name) {
			if slices.Contains(foreignOwners, owner) { // no agent frees that
				c.own(d, slot, "")
			}
		}
	}
}

// joinAll lets all nodes see all devices.
func (c *cluster) joinAll() {
	for _, n := range c.nodes {
		for _, d := range c.devices {
			if d.reaches(n) && !n.seesOnline(d.name) {
				n.see(d, true, true)
			}
		}
	}
}

// checkAvailable verifies that a node admits a Pod that requests a resource.
func (c *cluster) checkAvailable(n *memoryNode, name string) {
	pod := newMemoryPod(n.name+"-last-"+name, v0.ResourceName(name), 1, false)
	if !n.kubelet.admit(pod, v0.ResourceName(name), 1) {
		c.violation("%s: a pod is not admitted although all slots of %s are free: %v; %+v",
			n.name, name, n.kubelet.lists(), n.agent != nil)
	}
	n.kubelet.end(pod, true)
	time.Sleep(maxRelease)
	c.checkFree()
}
