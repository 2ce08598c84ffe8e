package deviceplugin

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	v0 "akri.sh/akri/api/v0"
)

// names says which Instance a resource stands for. The kubelet knows resources by
// the Instance's name alone; of two Instances of one name in two namespaces the
// first one met has the resource, the other waits for its end.
type names struct {
	owner   map[string]types.NamespacedName
	devices map[types.NamespacedName]device.Device
	records map[types.NamespacedName]*v0.Instance
	lists   map[types.NamespacedName][]types.NamespacedName // by Configuration
}

func newNames() *names {
	return &names{
		owner:   map[string]types.NamespacedName{},
		devices: map[types.NamespacedName]device.Device{},
		records: map[types.NamespacedName]*v0.Instance{},
		lists:   map[types.NamespacedName][]types.NamespacedName{},
	}
}

// of returns the Instance that has a resource.
func (n *names) of(resource string) types.NamespacedName { return n.owner[resource] }

// device returns the device behind a resource.
func (n *names) device(resource string) (device.Device, bool) {
	d, known := n.devices[n.owner[resource]]
	return d, known
}

// publish replaces the devices of a Configuration. It returns those that are no
// longer among them.
func (n *names) publish(configuration types.NamespacedName, devices []device.Device) (withdrawn []types.NamespacedName) {
	var list []types.NamespacedName
	for _, d := range devices {
		n.devices[d.Instance] = d
		list = append(list, d.Instance)
	}
	for _, name := range n.lists[configuration] {
		if !slices.Contains(list, name) {
			delete(n.devices, name)
			withdrawn = append(withdrawn, name)
		}
	}
	if len(list) == 0 {
		delete(n.lists, configuration)
	} else {
		n.lists[configuration] = list
	}
	return withdrawn
}

// take gives a resource to an Instance unless another one has it. A device that is
// published goes before a record alone, whose former owner is returned.
func (n *names) take(name types.NamespacedName) (has bool, former types.NamespacedName) {
	owner, owned := n.owner[name.Name]
	switch {
	case !owned || owner == name:
		n.owner[name.Name] = name
		return true, name
	case n.published(name) && !n.published(owner):
		n.owner[name.Name] = name
		return true, owner
	}
	return false, owner
}

func (n *names) published(name types.NamespacedName) bool {
	_, known := n.devices[name]
	return known
}

// drop takes the resource from an Instance of which nothing is left, and returns
// one that waits for it.
func (n *names) drop(name types.NamespacedName) (next types.NamespacedName, waits bool) {
	if n.owner[name.Name] != name || n.published(name) || n.records[name] != nil {
		return next, false
	}
	delete(n.owner, name.Name)
	var waiting []types.NamespacedName
	for other := range n.devices {
		if other.Name == name.Name {
			waiting = append(waiting, other)
		}
	}
	if len(waiting) == 0 {
		return next, false
	}
	slices.SortFunc(waiting, func(a, b types.NamespacedName) int { return strings.Compare(a.Namespace, b.Namespace) })
	return waiting[0], true
}
