package deviceplugin

import (
	"fmt"
	"net/http"
	"time"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// memoryDevice is a device, which has an Instance while a node sees it.
type memoryDevice struct {
	streams.Key
	name string // of the Instance
	node string // of a local device
}

// reaches reports whether a node can see a device.
func (d memoryDevice) reaches(n *memoryNode) bool { return d.Shared || d.node == n.name }

// act is something that happens at random. Only some schedules have those that are faults.
type act struct {
	name   string
	weight int
	fault  bool
	do     func(*cluster, *memoryNode)
}

var acts = []act{
	{"a pod arrives", 8, false, (*cluster).admit},
	{"a pod ends", 8, false, (*cluster).end},
	{"a pod is deleted by force", 2, true, (*cluster).force},
	{"the kubelet restarts", 1, true, func(c *cluster, n *memoryNode) { n.kubelet.restart(c.upTo(2 * time.Second)) }},
	{"the agent restarts", 1, true, func(_ *cluster, n *memoryNode) {
		n.end()
		n.start()
	}},
	{"the agent crashes", 1, true, func(c *cluster, n *memoryNode) {
		n.crash()
		n.startAt = time.Now().Add(c.upTo(maxDowntime))
	}},
	{"a device comes or goes", 2, true, (*cluster).flap},
	{"the API server is out of reach", 1, true, func(_ *cluster, n *memoryNode) { n.link.set(true, false) }},
	{"requests fail", 3, true, func(_ *cluster, n *memoryNode) { n.link.set(false, true) }},
	{"writes are refused", 1, true, func(c *cluster, n *memoryNode) {
		n.link.refuse([]int{http.StatusForbidden, http.StatusUnprocessableEntity}[c.random.IntN(2)], c.upTo(maxRefusal))
	}},
	{"a user deletes an Instance", 1, true, (*cluster).remove},
	{"a user edits an owner", 1, true, (*cluster).edit},
	{"a user edits the capacity", 1, true, (*cluster).resize},
	{"requests succeed", 2, false, func(_ *cluster, n *memoryNode) { n.link.set(false, false) }},
}

// chooseActs decides what happens in this schedule.
func (c *cluster) chooseActs() {
	c.stalls = c.random.IntN(2) == 0
	for _, a := range acts {
		if a.fault && c.random.IntN(2) == 0 {
			continue
		}
		for range a.weight {
			c.acts = append(c.acts, a)
		}
	}
}

// step does something at random.
func (c *cluster) step() {
	for _, n := range c.nodes {
		n.startDue()
	}
	n, a := c.nodes[c.random.IntN(len(c.nodes))], c.acts[c.random.IntN(len(c.acts))]
	c.log.Debug("Step", "node", n.name, "what", a.name)
	c.api.count(a.name)
	a.do(c, n)
}

// createDevices creates the Configuration and decides which devices there are. Half of the
// schedules have local devices, next to shared ones or without any.
func (c *cluster) createDevices() {
	c.configuration = newMemoryConfiguration(1 + c.random.Int32N(3))
	local := c.random.IntN(2) == 0
	for i := range 1 + c.random.IntN(3) {
		d := memoryDevice{Key: streams.Key{ID: fmt.Sprint("device-", i), Shared: true}}
		if local && c.random.IntN(2) == 0 {
			d.Shared, d.node = false, fmt.Sprint("node-", c.random.IntN(2))
			c.api.count(localDevices)
		}
		d.name = v0.InstanceName(group, d.ID, d.node, d.Shared)
		c.devices = append(c.devices, d)
	}
}

// device returns the device of an Instance.
func (c *cluster) device(instance string) memoryDevice {
	for _, d := range c.devices {
		if d.name == instance {
			return d
		}
	}
	panic("there is no device of " + instance)
}

// history returns what users have done to an Instance.
func (c *cluster) history(instance string) *history {
	if c.histories[instance] == nil {
		c.histories[instance] = &history{edited: map[string]time.Time{}}
	}
	return c.histories[instance]
}

// admit lets a Pod arrive that requests a device, or two, of either level.
func (c *cluster) admit(n *memoryNode) {
	name, count := group, 1+c.random.IntN(2)
	if d := c.devices[c.random.IntN(len(c.devices))]; c.random.IntN(2) == 0 && d.reaches(n) {
		name = d.name
		count = min(count, int(c.configuration.Spec.Capacity))
	}
	c.arrive(n, name, count, 0)
}

// arrive admits a Pod in the background, after a delay. Several nodes may race for a slot.
func (c *cluster) arrive(n *memoryNode, name string, count int, delay time.Duration) {
	c.pods++
	pod := newMemoryPod(fmt.Sprint("pod-", c.pods), v0.ResourceName(name), count, c.random.IntN(3) == 0)
	pod.lag = c.upTo(time.Second)
	if c.stalls && c.random.IntN(20) == 0 {
		pod.stallBefore, pod.stallAfter = c.upTo(maxStall), c.upTo(maxStall)
	}
	c.admitting.Go(func() {
		time.Sleep(delay)
		n.kubelet.admit(pod, v0.ResourceName(name), count)
	})
}

// end ends a Pod, and may remove it.
func (c *cluster) end(n *memoryNode) {
	if live := n.kubelet.live(); len(live) > 0 {
		n.kubelet.end(live[c.random.IntN(len(live))], c.random.IntN(2) == 0)
	}
}

// force deletes a Pod by force.
func (c *cluster) force(n *memoryNode) {
	if live := n.kubelet.live(); len(live) > 0 {
		n.kubelet.force(live[c.random.IntN(len(live))], c.upTo(maxGhost))
	}
}

// flap lets a device go offline or return, or the node leave or join it.
func (c *cluster) flap(n *memoryNode) {
	if d := c.devices[c.random.IntN(len(c.devices))]; d.reaches(n) {
		n.see(d, c.random.IntN(5) > 1, c.random.IntN(3) > 0)
	}
}
