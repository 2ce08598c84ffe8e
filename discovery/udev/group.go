package udev

import (
	"cmp"
	"maps"
	"path"
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

// devices returns the devices, sorted by id.
func (p *presenter) devices(matches map[string]*match) []discovery.Device {
	units := p.units(matches)
	ids := p.ids(units)
	devices := make([]discovery.Device, 0, len(units))
	for _, u := range units {
		devices = append(devices, p.device(u, ids[u.path]))
	}
	slices.SortFunc(devices, func(a, b discovery.Device) int { return cmp.Compare(a.ID, b.ID) })
	return devices
}

// units groups the matches by device or, with GroupRecursive, by the topmost device.
func (p *presenter) units(matches map[string]*match) []*unit {
	present := make(map[string]bool, len(matches))
	for _, m := range matches {
		present[m.device] = true
	}
	byPath := map[string]*unit{}
	for _, devPath := range slices.Sorted(maps.Keys(matches)) {
		m := matches[devPath]
		top := m.device
		if p.details.GroupRecursive {
			top = topmost(present, m.device)
		}
		u := byPath[top]
		if u == nil {
			u = &unit{path: top}
			byPath[top] = u
		}
		u.members = append(u.members, m)
	}
	units := slices.SortedFunc(maps.Values(byPath), func(a, b *unit) int { return cmp.Compare(a.path, b.path) })
	for _, u := range units {
		slices.SortStableFunc(u.members, func(a, b *match) int {
			return cmp.Or(cmp.Compare(strings.Count(a.device, "/"), strings.Count(b.device, "/")), cmp.Compare(a.device, b.device))
		})
	}
	return units
}

// topmost returns the highest of a device's ancestors that is present, or the device.
func topmost(present map[string]bool, devPath string) string {
	top := devPath
	for up := path.Dir(devPath); len(up) > 1; up = path.Dir(up) {
		if present[up] {
			top = up
		}
	}
	return top
}

// ids returns the ids of units by their path. If several want the same id, all of them are
// identified by their paths: an id that depended on which one was first would belong to
// another device after a restart of the handler.
func (p *presenter) ids(units []*unit) map[string]string {
	wanted, count := make(map[string]string, len(units)), map[string]int{}
	for _, u := range units {
		for _, m := range u.members {
			if wanted[u.path] == "" && m.id != "" {
				wanted[u.path] = m.id
				count[m.id]++
			}
		}
	}
	ids := make(map[string]string, len(units))
	for _, u := range units {
		ids[u.path] = u.path
		switch id := wanted[u.path]; {
		case count[id] == 1:
			ids[u.path] = id
		case count[id] > 1:
			p.failed(failedDuplicateID)
		}
	}
	return ids
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
