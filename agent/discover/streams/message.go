package streams

import (
	"fmt"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/discovery/protocol"
)

const (
	maxDevices = 10_000
	maxIDBytes = 4096
)

// devicesOf returns the devices of a message. It skips devices without a valid id and
// describes the last one in complaint.
func devicesOf(message *protocol.DiscoverResponse, shared bool) (devices []Device, complaint string) {
	seen := map[string]bool{}
	for i, d := range message.GetDevices() {
		switch id := d.GetId(); {
		case len(devices) == maxDevices:
			return devices, fmt.Sprintf("the handler lists %d devices, the limit is %d: restrict discoveryDetails", len(message.GetDevices()), maxDevices)
		case id == "":
			complaint = fmt.Sprintf("device %d of the handler's list has no id and is ignored: this is a bug in the handler", i)
			continue
		case len(id) > maxIDBytes:
			complaint = fmt.Sprintf("device %d of the handler's list has an id of %d bytes (limit %d) and is ignored: this is a bug in the handler", i, len(id), maxIDBytes)
			continue
		case seen[id]:
			continue
		}
		seen[d.GetId()] = true
		devices = append(devices, deviceOf(d, shared))
	}
	return devices, complaint
}

func deviceOf(message *protocol.Device, shared bool) Device {
	d := Device{Key: Key{ID: message.GetId(), Shared: shared}, Properties: message.GetProperties()}
	for _, mount := range message.GetMounts() {
		d.Mounts = append(d.Mounts, device.Mount{
			ContainerPath: mount.GetContainerPath(), HostPath: mount.GetHostPath(), ReadOnly: mount.GetReadOnly(),
		})
	}
	for _, spec := range message.GetDeviceSpecs() {
		d.Files = append(d.Files, device.File{
			ContainerPath: spec.GetContainerPath(), HostPath: spec.GetHostPath(), Permissions: spec.GetPermissions(),
		})
	}
	return d
}
