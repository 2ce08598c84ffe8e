package publish

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// What the devices of one node may cost in all, and those of one namespace. One
// Configuration is bounded by the schema, but not the product of devices, capacities and
// Configurations, and agents have 256 MiB. A slot takes some 300 bytes of an agent, a
// device some 70 KiB, most of it its gRPC server and the kubelet's connection to it, and
// a byte of a property is held two or three times. Each device is an extended resource of
// the Node, too, which etcd must be able to store.
const (
	maxNodeDevices      = 2000
	maxNamespaceDevices = 1000
	maxNodeSlots        = 20_000
	maxNamespaceSlots   = 10_000
	maxNodeBytes        = 16 << 20
	maxNamespaceBytes   = 8 << 20
	// propertyBytes is what a property costs in addition to its name and value: its
	// entries in maps. A thousand empty properties are not free.
	propertyBytes = 64
)

// cost is what devices cost a node.
type cost struct {
	devices int
	slots   int // that are offered
	bytes   int // of properties
}

var (
	nodeLimit      = cost{maxNodeDevices, maxNodeSlots, maxNodeBytes}
	namespaceLimit = cost{maxNamespaceDevices, maxNamespaceSlots, maxNamespaceBytes}
)

// combine applies an operation to each part of two costs.
func (c cost) combine(other cost, operation func(a, b int) int) cost {
	return cost{operation(c.devices, other.devices), operation(c.slots, other.slots), operation(c.bytes, other.bytes)}
}

func (c cost) plus(other cost) cost  { return c.combine(other, func(a, b int) int { return a + b }) }
func (c cost) minus(other cost) cost { return c.combine(other, func(a, b int) int { return a - b }) }
func (c cost) min(other cost) cost   { return c.combine(other, func(a, b int) int { return min(a, b) }) }
func (c cost) max(other cost) cost   { return c.combine(other, func(a, b int) int { return max(a, b) }) }

// costOf returns the cost of one device with a capacity, given its own properties and
// those of its Configuration, which take precedence.
func costOf(capacity int32, own, configured map[string]string) cost {
	c := cost{devices: 1, slots: int(min(max(capacity, 1), v0.MaxSlots))}
	for name, value := range configured {
		c.bytes += propertyBytes + len(name) + len(value)
	}
	for name, value := range own {
		if _, found := configured[name]; !found {
			c.bytes += propertyBytes + len(name) + len(value)
		}
	}
	return c
}

// budget bounds what the devices of all Configurations cost one node. It is safe for
// concurrent use.
type budget struct {
	node, namespace cost // the limits

	mu sync.Mutex
	// spent is the cost of each Configuration: as its last decision allotted it, or
	// before the first one, that of the Instances that exist.
	spent map[types.NamespacedName]cost
	// waiting are the Configurations with devices that did not fit.
	waiting map[types.NamespacedName]bool
}

func newBudget() *budget {
	return &budget{
		node: nodeLimit, namespace: namespaceLimit,
		spent: map[types.NamespacedName]cost{}, waiting: map[types.NamespacedName]bool{},
	}
}

// reserve keeps room for the Instances that exist when the agent starts: devices that
// appear must not take it before the Configuration of an Instance is published.
func (b *budget) reserve(list []*v0.Instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, instance := range list {
		name := types.NamespacedName{Namespace: instance.Namespace, Name: instance.Spec.ConfigurationName}
		b.spent[name] = b.spent[name].plus(costOf(instance.Spec.Capacity, instance.Spec.BrokerProperties, nil))
	}
}

// settle calls decide, which must not block, with the account of a Configuration, whose
// cost is then what decide spends: nothing, if the Configuration is not served. It
// returns the Configurations that may have room now: those that wait, if this one costs
// less than before.
func (b *budget) settle(name types.NamespacedName, decide func(*account)) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.account(name)
	decide(a)
	before := b.spent[name]
	delete(b.spent, name)
	delete(b.waiting, name)
	if a.spent != (cost{}) {
		b.spent[name] = a.spent
	}
	var again []types.NamespacedName
	if a.spent.min(before) != before {
		for other := range b.waiting {
			again = append(again, other)
		}
	}
	if a.refused {
		b.waiting[name] = true
	}
	return again
}

// account returns what other Configurations leave for one. The caller holds mu.
func (b *budget) account(name types.NamespacedName) *account {
	namespaces := map[string]cost{}
	for other, spent := range b.spent {
		if other != name {
			namespaces[other.Namespace] = namespaces[other.Namespace].plus(spent)
		}
	}
	a := &account{name: name, budget: b, namespace: b.namespace.minus(namespaces[name.Namespace]), node: b.node}
	for _, spent := range namespaces {
		// What a namespace has beyond its limit, such as Instances from before an update
		// of the agent, is not offered and takes no room from others.
		a.node = a.node.minus(spent.min(b.namespace))
	}
	return a
}

// account is what one Configuration may spend, and has spent.
type account struct {
	name            types.NamespacedName
	budget          *budget
	node, namespace cost // what is left
	spent           cost
	refused         bool
}

// take spends a cost if that is possible. Otherwise it returns the cause and the remedy.
// A cost may have negative parts.
func (a *account) take(c cost) (shortage string) {
	for _, part := range []struct {
		cost, node, namespace, nodeLimit, namespaceLimit int
		noun, remedy                                     string
	}{
		{c.devices, a.node.devices, a.namespace.devices, a.budget.node.devices, a.budget.namespace.devices,
			"devices", "restrict discoveryDetails"},
		{c.slots, a.node.slots, a.namespace.slots, a.budget.node.slots, a.budget.namespace.slots,
			"slots", "reduce capacity, or restrict discoveryDetails"},
		{c.bytes, a.node.bytes, a.namespace.bytes, a.budget.node.bytes, a.budget.namespace.bytes,
			"bytes of properties", "shorten brokerProperties, or restrict discoveryDetails"},
	} {
		switch {
		case part.cost <= 0:
		case part.cost > part.namespace:
			shortage = fmt.Sprintf("the Configurations of namespace %s may have %d %s on one node: %s",
				a.name.Namespace, part.namespaceLimit, part.noun, part.remedy)
		case part.cost > part.node:
			shortage = fmt.Sprintf("all Configurations may have %d %s on one node: %s", part.nodeLimit, part.noun, part.remedy)
		}
		if shortage != "" {
			a.refused = true
			return shortage
		}
	}
	a.node, a.namespace, a.spent = a.node.minus(c), a.namespace.minus(c), a.spent.plus(c)
	return ""
}

// allot refuses what does not fit into the budget. Devices that have an Instance come
// first, as they are; then changes of these; then new devices. A device whose change does
// not fit stays as it is. One that does not fit at all is withheld from the kubelet: its
// Instance stays, and containers keep its slots. Of the Instances that are kept without a
// device, allot returns those that fit.
func (s nodeView) allot(a *account, list []candidate, adoptable []*v0.Instance) (fitting []*v0.Instance, shortage string) {
	unchanged := func(have *v0.Instance) cost {
		spec := s.configuration.Spec
		return costOf(min(have.Spec.Capacity, spec.Capacity), have.Spec.BrokerProperties, spec.BrokerProperties)
	}
	for i := range list {
		if c := &list[i]; c.have != nil {
			if short := a.take(unchanged(c.have)); short != "" {
				c.withheld, c.refused = true, fmt.Sprintf("device %q is not offered: %s", c.shownID(), short)
			}
		}
	}
	for _, have := range adoptable {
		if short := a.take(unchanged(have)); short != "" {
			shortage = fmt.Sprintf("Instances such as %s are not offered: %s", have.Name, short)
			continue
		}
		fitting = append(fitting, have)
	}
	changed := func(c candidate) cost {
		want := costOf(s.configuration.Spec.Capacity, c.known.Properties, s.configuration.Spec.BrokerProperties)
		switch {
		case c.have == nil:
			return want
		case !s.author(c.have): // the Instance has what its author knows about the device
			want = want.max(unchanged(c.have))
		}
		return want.minus(unchanged(c.have))
	}
	for _, isNew := range []bool{false, true} {
		for i := range list {
			c := &list[i]
			if c.refused != "" || (c.have == nil) != isNew {
				continue
			}
			if short := a.take(changed(*c)); short != "" {
				what := "device %q does not get its new capacity and properties: %s"
				if isNew {
					what = "device %q is not published: %s"
				}
				c.refused = fmt.Sprintf(what, c.shownID(), short)
			}
		}
	}
	return slices.Clip(fitting), shortage
}
