package streams

import (
	"fmt"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/text"
)

const (
	maxDevices = 10_000
	maxIDBytes = 4096
	// maxShownBytes bounds a device's id in a message.
	maxShownBytes = 64
)

// devicesOf returns the devices in a message of a handler. It skips devices without a
// valid id and describes the last one in complaint.
func devicesOf(message *protocol.DiscoverResponse, from registry.Entry, permitted hostpaths.Policy) (devices []Device, complaint string) {
	seen := map[string]bool{}
	for i, d := range message.GetDevices() {
		switch id := d.GetId(); {
		case len(devices) == maxDevices:
			return devices, fmt.Sprintf("the handler lists %d devices, the limit is %d: restrict discoveryDetails",
				len(message.GetDevices()), maxDevices)
		case id == "":
			complaint = fmt.Sprintf("device %d of the handler's list has no id and is ignored: this is a bug in the handler", i)
			continue
		case len(id) > maxIDBytes:
			complaint = fmt.Sprintf("device %d of the handler's list has an id of %d bytes (limit %d) and is ignored: this is a bug in the handler",
				i, len(id), maxIDBytes)
			continue
		case seen[id]:
			continue
		}
		seen[d.GetId()] = true
		devices = append(devices, deviceOf(d, from, permitted))
	}
	return devices, complaint
}

// deviceOf returns a device. If something of the node that it needs is not permitted,
// it is refused as a whole: containers would start without it, and fail.
func deviceOf(message *protocol.Device, from registry.Entry, permitted hostpaths.Policy) Device {
	d := Device{Key: Key{ID: message.GetId(), Shared: from.Shared}, Properties: message.GetProperties()}
	handler := hostpaths.Handler{Name: from.Name, Network: from.Network}
	refuse := func(err error) Device {
		d.Refused = fmt.Sprintf("device %q: %v", text.Truncate(d.ID, maxShownBytes), err)
		d.Mounts, d.Files = nil, nil
		return d
	}
	for _, mount := range message.GetMounts() {
		clean, err := permitted.Mount(handler, device.Mount{
			ContainerPath: mount.GetContainerPath(), HostPath: mount.GetHostPath(), ReadOnly: mount.GetReadOnly(),
		})
		if err != nil {
			return refuse(err)
		}
		d.Mounts = append(d.Mounts, clean)
	}
	for _, spec := range message.GetDeviceSpecs() {
		clean, err := permitted.DeviceFile(handler, device.File{
			ContainerPath: spec.GetContainerPath(), HostPath: spec.GetHostPath(), Permissions: spec.GetPermissions(),
		})
		if err != nil {
			return refuse(err)
		}
		d.Files = append(d.Files, clean)
	}
	return d
}
