package publish

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// count is a number of devices, and of the slots that they offer.
type count struct{ devices, slots int }

// What one Configuration, and all together, may have on one node. The schema bounds the
// capacity, but not the product of devices, capacities and Configurations, and agents have
// 256 MiB. A slot takes some 300 bytes of an agent, a device some 70 KiB, most of it its
// gRPC server and the kubelet's connection to it. Each device is an extended resource of
// the Node, too, which etcd must be able to store.
var (
	configurationLimit = count{v0.MaxDevices, 10_000}
	nodeLimit          = count{2000, 20_000}
)

// fullDelay is the delay before devices that the node has no place for are published, if
// others have left.
const fullDelay = 10 * time.Second

// counts bounds the devices of a node. It is safe for concurrent use.
type counts struct {
	configuration, node count // the limits
	existing            func() []*v0.Instance

	mu sync.Mutex
	// taken is what each Configuration has: by its last pass or, before the first one, the
	// Instances that exist. Devices that appear after a restart of the agent do not take
	// their places. It is nil before the first pass of all.
	taken map[types.NamespacedName]count
}

// newCounts returns the counts of a node on which Instances exist.
func newCounts(existing func() []*v0.Instance) *counts {
	return &counts{configuration: configurationLimit, node: nodeLimit, existing: existing}
}

// fit refuses the devices that are over a limit, and returns those of the kept Instances,
// which no device has, that are not, and why others are. Devices that have an Instance come
// first, as they are; then, what their Instances lack of the capacity; then new devices. If
// the capacity does not fit, the device stays as it is. A device whose Instance does not fit
// is withheld from the kubelet, and containers keep its slots. full means that the node has
// no place, so others that leave make some.
func (c *counts) fit(s nodeView, list []candidate, kept []*v0.Instance) (fitting []*v0.Instance, shortage string, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := account{counts: c, left: c.left(s.name())}
	capacity := max(int(s.configuration.Spec.Capacity), 1)
	slots := func(have *v0.Instance) int { return min(int(have.Spec.Capacity), capacity) }
	for i := range list {
		if d := &list[i]; d.have != nil {
			if short := a.take(count{1, slots(d.have)}); short != "" {
				d.withheld, d.refused = true, fmt.Sprintf("device %q is not offered: %s", d.shownID(), short)
			}
		}
	}
	for _, have := range kept {
		if short := a.take(count{1, slots(have)}); short != "" {
			shortage = fmt.Sprintf("Instances such as %s are not offered: %s", have.Name, short)
			continue
		}
		fitting = append(fitting, have)
	}
	for i := range list {
		if d := &list[i]; d.have != nil && d.refused == "" {
			if short := a.take(count{0, capacity - slots(d.have)}); short != "" {
				d.refused = fmt.Sprintf("device %q is not changed to the new capacity: %s", d.shownID(), short)
			}
		}
	}
	for i := range list {
		if d := &list[i]; d.have == nil && d.refused == "" {
			if short := a.take(count{1, capacity}); short != "" {
				d.refused = fmt.Sprintf("device %q is not published: %s", d.shownID(), short)
			}
		}
	}
	c.taken[s.name()] = a.taken
	return fitting, shortage, a.full
}

// free records that a Configuration has no devices.
func (c *counts) free(configuration types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin()
	delete(c.taken, configuration)
}

// begin counts the Instances that exist, once. The caller holds mu.
func (c *counts) begin() {
	if c.taken != nil {
		return
	}
	c.taken = map[types.NamespacedName]count{}
	for _, instance := range c.existing() {
		owner := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
		c.taken[owner] = c.taken[owner].plus(count{1, int(instance.Spec.Capacity)})
	}
}

// left returns what others leave for a Configuration. The caller holds mu.
func (c *counts) left(name types.NamespacedName) count {
	c.begin()
	left := c.node
	for other, taken := range c.taken {
		if other != name {
			left = count{left.devices - taken.devices, left.slots - taken.slots}
		}
	}
	return left
}

func (c count) plus(other count) count {
	return count{c.devices + other.devices, c.slots + other.slots}
}

// account is what a pass takes for its Configuration.
type account struct {
	*counts

	left, taken count
	full        bool
}

// take takes devices and slots if that is possible. Otherwise it returns the cause and the
// remedy.
func (a *account) take(more count) (shortage string) {
	after := a.taken.plus(more)
	for _, part := range []struct {
		more, after, own, left, all int
		noun, remedy                string
	}{
		{more.devices, after.devices, a.configuration.devices, a.left.devices, a.node.devices, "devices", "restrict discoveryDetails"},
		{more.slots, after.slots, a.configuration.slots, a.left.slots, a.node.slots, "slots", "reduce capacity, or restrict discoveryDetails"},
	} {
		switch {
		case part.more == 0: // even if Instances that exist are over the limit
		case part.after > part.own:
			return fmt.Sprintf("a Configuration may have %d %s on one node: %s", part.own, part.noun, part.remedy)
		case part.after > part.left:
			a.full = true
			return fmt.Sprintf("all Configurations may have %d %s on one node: %s", part.all, part.noun, part.remedy)
		}
	}
	a.taken = after
	return ""
}
