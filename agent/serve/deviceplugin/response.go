package deviceplugin

import (
	"cmp"
	"slices"
	"strings"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
)

// respond returns the response for a container that gets slots of a device: mounts,
// device files, and each property as NAME and NAME_HASH, where HASH distinguishes
// the device from others in the same container. One response holds everything,
// because the kubelet reads only the first one (pkg/kubelet/cm/devicemanager,
// ContainerResponses[0]).
func respond(d device.Device) *plugin.ContainerAllocateResponse {
	response := &plugin.ContainerAllocateResponse{Envs: map[string]string{}}
	suffix := "_" + hash(d.Instance.Name)
	for name, value := range d.Properties {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			continue // not a valid environment variable
		}
		response.Envs[name] = value
		response.Envs[name+suffix] = value
	}
	for _, m := range d.Mounts {
		response.Mounts = append(response.Mounts, &plugin.Mount{
			ContainerPath: m.ContainerPath, HostPath: m.HostPath, ReadOnly: m.ReadOnly,
		})
	}
	for _, f := range d.Files {
		response.Devices = append(response.Devices, &plugin.DeviceSpec{
			ContainerPath: cmp.Or(f.ContainerPath, f.HostPath), HostPath: f.HostPath, Permissions: cmp.Or(f.Permissions, "rw"),
		})
	}
	slices.SortStableFunc(response.Devices, func(a, b *plugin.DeviceSpec) int {
		return strings.Compare(a.ContainerPath, b.ContainerPath)
	})
	return response
}

// hash returns the part of an Instance's name after its Configuration's name, in
// upper case.
func hash(instance string) string {
	return strings.ToUpper(instance[strings.LastIndexByte(instance, '-')+1:])
}
