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

const (
	// fullDelay is the delay before devices that the node has no place for are published, if
	// others have left.
	fullDelay = 10 * time.Second

	fewerDevices = "restrict discoveryDetails"
	fewerSlots   = "reduce capacity, or restrict discoveryDetails"
)

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
	refused := func(d *candidate, more count, action string) bool {
		if short := a.take(more); short != "" {
			d.refused = fmt.Sprintf("device %q is not %s: %s", d.shownID(), action, short)
			return true
		}
		return false
	}
	for i := range list {
		if d := &list[i]; d.have != nil {
			d.withheld = refused(d, count{1, slots(d.have)}, "offered")
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
			refused(d, count{0, capacity - slots(d.have)}, "changed to the new capacity")
		}
	}
	for i := range list {
		if d := &list[i]; d.have == nil && d.refused == "" {
			refused(d, count{1, capacity}, "published")
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
	devices, slots := more.devices > 0, more.slots > 0 // Instances that exist may be over a limit already
	switch {
	case devices && after.devices > a.configuration.devices:
		return fmt.Sprintf("a Configuration may have at most %d devices on one node: %s", a.configuration.devices, fewerDevices)
	case slots && after.slots > a.configuration.slots:
		return fmt.Sprintf("a Configuration may have at most %d slots on one node: %s", a.configuration.slots, fewerSlots)
	case devices && after.devices > a.left.devices:
		a.full = true
		return fmt.Sprintf("all Configurations together may have at most %d devices on one node: %s", a.node.devices, fewerDevices)
	case slots && after.slots > a.left.slots:
		a.full = true
		return fmt.Sprintf("all Configurations together may have at most %d slots on one node: %s", a.node.slots, fewerSlots)
	}
	a.taken = after
	return ""
}
