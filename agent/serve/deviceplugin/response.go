package deviceplugin

import (
	"cmp"
	"slices"
	"strings"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
)

// respond is what a container gets that has slots of a device: each property as
// NAME and NAME_HASH, where HASH tells the device from others in the same
// container, its mounts and its device files. All in one response: the kubelet
// reads no other (pkg/kubelet/cm/devicemanager, ContainerResponses[0]).
func respond(d device.Device) *plugin.ContainerAllocateResponse {
	response := &plugin.ContainerAllocateResponse{Envs: map[string]string{}}
	suffix := "_" + hash(d.Instance.Name)
	for name, value := range d.Properties {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			continue // no environment can hold it
		}
		response.Envs[name] = value
		response.Envs[name+suffix] = value
	}
	for _, m := range d.Mounts {
		response.Mounts = append(response.Mounts, &plugin.Mount{
			ContainerPath: m.ContainerPath, HostPath: m.HostPath, ReadOnly: m.ReadOnly,
		})
	}
	for _, n := range d.Nodes {
		response.Devices = append(response.Devices, &plugin.DeviceSpec{
			ContainerPath: cmp.Or(n.ContainerPath, n.HostPath), HostPath: n.HostPath, Permissions: cmp.Or(n.Permissions, "rw"),
		})
	}
	slices.SortStableFunc(response.Devices, func(a, b *plugin.DeviceSpec) int {
		return strings.Compare(a.ContainerPath, b.ContainerPath)
	})
	return response
}

// hash is the part of an Instance's name that follows its Configuration's, in
// capitals.
func hash(instance string) string {
	return strings.ToUpper(instance[strings.LastIndexByte(instance, '-')+1:])
}
