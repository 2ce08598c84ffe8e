package udev

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/udev/details"
)

// The properties of devices. In groups, DevNodeProperty has a suffix: _0, _1 and so on.
const (
	DevPathProperty = "UDEV_DEVPATH"
	DevNodeProperty = "UDEV_DEVNODE"
)

// presenter makes devices for agents from matches.
type presenter struct {
	details *details.Details
	// resource is Akri's devicePluginResourceName; may be empty.
	resource string
	// vfio is Akri's vfioPassthrough.
	vfio bool
	// failed counts failures by reason.
	failed func(reason string)
}

// unit is what becomes one device for agents.
type unit struct {
	// path is the topmost device.
	path string
	// members are sorted: the topmost first.
	members []*match
}

// id returns the first id of a member; empty if there is none.
func (u *unit) id() string {
	for _, m := range u.members {
		if m.id != "" {
			return m.id
		}
	}
	return ""
}

// devices returns the devices, sorted by id. If several want the same id, or the path of
// another one, they are identified by their paths: an id that depended on which one was first
// would belong to another device after a restart of the handler.
func (p *presenter) devices(matches map[string]*match) []discovery.Device {
	units, count := p.units(matches), map[string]int{}
	for _, u := range units {
		count[u.path]++
		if u.id() != u.path {
			count[u.id()]++
		}
	}
	devices := make([]discovery.Device, 0, len(units))
	for _, u := range units {
		id := u.id()
		if id != "" && count[id] > 1 {
			p.failed(failedDuplicateID)
			id = ""
		}
		devices = append(devices, p.device(u, cmp.Or(id, u.path)))
	}
	slices.SortFunc(devices, func(a, b discovery.Device) int { return cmp.Compare(a.ID, b.ID) })
	return devices
}

// units groups the matches by device or, with GroupRecursive, by the topmost device.
func (p *presenter) units(matches map[string]*match) (units []*unit) {
	sorted := slices.SortedFunc(maps.Values(matches), func(a, b *match) int {
		return cmp.Or(cmp.Compare(strings.Count(a.device, "/"), strings.Count(b.device, "/")),
			cmp.Compare(a.device, b.device), cmp.Compare(a.path, b.path))
	})
	for _, m := range sorted {
		i := slices.IndexFunc(units, func(u *unit) bool {
			return m.device == u.path || p.details.GroupRecursive && isWithin(m.device, u.path)
		})
		if i < 0 {
			i = len(units)
			units = append(units, &unit{path: m.device})
		}
		units[i].members = append(units[i].members, m)
	}
	return units
}

func (p *presenter) device(u *unit, id string) discovery.Device {
	device := discovery.Device{ID: id, Properties: map[string]string{}}
	for _, m := range u.members {
		for name, value := range m.properties {
			if _, known := device.Properties[name]; !known {
				device.Properties[name] = value
			}
		}
	}
	device.Properties[DevPathProperty] = u.path
	seen := map[string]bool{}
	for _, m := range u.members {
		if m.node == "" || seen[m.node] {
			continue
		}
		suffix := ""
		if p.details.GroupRecursive {
			suffix = "_" + strconv.Itoa(len(seen))
		}
		seen[m.node] = true
		device.Properties[DevNodeProperty+suffix] = m.node
		if address, ok := usbAddress(m.node); ok && p.resource != "" {
			device.Properties["USB_RESOURCE_"+resourceSuffix(p.resource)+suffix] = address
		}
		for _, file := range append([]string{m.node}, m.links...) {
			// Links have the device file itself behind them, so that they work even if
			// udevd moves them to another device.
			device.DeviceSpecs = append(device.DeviceSpecs, discovery.DeviceSpec{
				ContainerPath: file, HostPath: m.node, Permissions: p.details.Permissions,
			})
		}
	}
	p.addPCI(&device, u)
	return device
}

// addPCI adds what virtual machines need to have a PCI device passed through.
func (p *presenter) addPCI(device *discovery.Device, u *unit) {
	address, ok := pciAddress(u.path)
	if !ok || p.resource == "" {
		return
	}
	device.Properties["PCI_RESOURCE_"+resourceSuffix(p.resource)] = address
	group := u.members[0].iommuGroup
	if _, err := strconv.Atoi(group); err != nil || !p.vfio {
		return
	}
	for _, file := range []string{"/dev/vfio/" + group, "/dev/vfio/vfio"} {
		device.DeviceSpecs = append(device.DeviceSpecs, discovery.DeviceSpec{ContainerPath: file, HostPath: file, Permissions: "rwm"})
	}
}
