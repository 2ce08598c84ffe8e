package udev

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"akri.sh/akri/discovery"
)

// The properties of devices. In groups, DevNodeProperty has a suffix: _0, _1 and so on.
const (
	DevPathProperty = "UDEV_DEVPATH"
	DevNodeProperty = "UDEV_DEVNODE"
)

// unit is what becomes one device for agents.
type unit struct {
	// path is the topmost device.
	path string
	// id is the first one of a member; empty if none has one.
	id string
	// members are sorted: the topmost first.
	members []*match
}

// devices returns the devices, sorted by id. If several want the same id, or the path of
// another one, they are identified by their paths: an id that depended on which one was first
// would belong to another device after a restart of the handler.
func (f *finder) devices() []discovery.Device {
	units, count, claims := f.units(), map[string]int{}, f.claims()
	for _, u := range units {
		count[u.path]++
		if u.id != u.path {
			count[u.id]++
		}
	}
	devices := make([]discovery.Device, 0, len(units))
	f.duplicates = 0
	for _, u := range units {
		id := u.id
		if id != "" && count[id] > 1 {
			f.duplicates++
			id = ""
		}
		devices = append(devices, f.device(u, cmp.Or(id, u.path), claims))
	}
	slices.SortFunc(devices, func(a, b discovery.Device) int { return cmp.Compare(a.ID, b.ID) })
	return devices
}

// units groups the matches by device or, with GroupRecursive, by the topmost device.
func (f *finder) units() (units []*unit) {
	sorted := slices.SortedFunc(maps.Values(f.matches), func(a, b *match) int {
		return cmp.Or(cmp.Compare(strings.Count(a.device, "/"), strings.Count(b.device, "/")),
			cmp.Compare(a.device, b.device), cmp.Compare(a.path, b.path))
	})
	for _, m := range sorted {
		i := slices.IndexFunc(units, func(u *unit) bool {
			return m.device == u.path || f.details.GroupRecursive && isWithin(m.device, u.path)
		})
		if i < 0 {
			i = len(units)
			units = append(units, &unit{path: m.device})
		}
		units[i].id, units[i].members = cmp.Or(units[i].id, m.id), append(units[i].members, m)
	}
	return units
}

func (f *finder) device(u *unit, id string, claims map[string]int) discovery.Device {
	device := discovery.Device{ID: id, Properties: map[string]string{}}
	for _, m := range slices.Backward(u.members) { // the topmost last: its values count
		maps.Copy(device.Properties, m.properties)
	}
	device.Properties[DevPathProperty] = u.path
	file := cmp.Or(u.members[0].node, u.path)
	if device.Properties[discovery.DisplayName] = file; u.members[0].name != "" {
		device.Properties[discovery.DisplayName] = u.members[0].name + " (" + file + ")"
	}
	seen, links := map[string]bool{}, u.links(claims)
	for _, m := range u.members {
		if m.node == "" || seen[m.node] {
			continue
		}
		suffix := ""
		if f.details.GroupRecursive {
			suffix = "_" + strconv.Itoa(len(seen))
		}
		seen[m.node] = true
		device.Properties[DevNodeProperty+suffix] = m.node
		if address, ok := usbAddress(m.node); ok && f.resource != "" {
			name := "USB_RESOURCE_" + resourceSuffix(f.resource) // KubeVirt splits its value, and knows no other name
			device.Properties[name] = strings.TrimPrefix(device.Properties[name]+","+address, ",")
		}
		// Links have the device file itself behind them, so that they work even if udevd moves
		// them to another device.
		own := slices.DeleteFunc(slices.Clone(m.links), func(link string) bool { return links[link] != m })
		files := append([]string{m.node}, own...)
		if file := f.details.ContainerPath; file != "" && !slices.Contains(files, file+suffix) {
			files = append(files, file+suffix) // those of a group differ by the number that DevNodeProperty has
		}
		for _, file := range files {
			device.DeviceSpecs = append(device.DeviceSpecs, discovery.DeviceSpec{
				ContainerPath: file, HostPath: m.node, Permissions: f.details.Permissions,
			})
		}
	}
	f.addPCI(&device, u)
	return device
}

// addPCI adds what virtual machines need to have a PCI device passed through.
func (f *finder) addPCI(device *discovery.Device, u *unit) {
	address, ok := pciAddress(u.path)
	if !ok || f.resource == "" {
		return
	}
	device.Properties["PCI_RESOURCE_"+resourceSuffix(f.resource)] = address
	group := u.members[0].iommuGroup
	if _, err := strconv.Atoi(group); err != nil || !f.vfio {
		return
	}
	for _, file := range []string{"/dev/vfio/" + group, "/dev/vfio/vfio"} {
		device.DeviceSpecs = append(device.DeviceSpecs, discovery.DeviceSpec{ContainerPath: file, HostPath: file, Permissions: "rwm"})
	}
}
