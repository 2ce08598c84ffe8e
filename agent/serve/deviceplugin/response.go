package deviceplugin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
)

// respond returns the response for a container that gets slots of these devices: their
// properties, mounts and device files. One response holds everything, because the
// kubelet reads only the first one (pkg/kubelet/cm/devicemanager,
// ContainerResponses[0]).
//
// If several devices have something at the same path in the container, that of the
// first Instance by name takes precedence, as in the kubelet for several resources
// (deviceRunContainerOptions). Refusing the container instead would make its
// Deployment create one failed Pod after another.
func respond(devices []device.Device) (*plugin.ContainerAllocateResponse, []omission) {
	devices = slices.Clone(devices)
	slices.SortFunc(devices, func(a, b device.Device) int { return strings.Compare(a.Instance.Name, b.Instance.Name) })
	devices = slices.CompactFunc(devices, func(a, b device.Device) bool { return a.Instance == b.Instance })
	response := &plugin.ContainerAllocateResponse{}
	var omissions []omission
	response.Envs, omissions = environment(devices)

	mounts, files := map[string]*plugin.Mount{}, map[string]*plugin.DeviceSpec{}
	for _, d := range devices {
		conflict := func(kind, path string) {
			omissions = append(omissions, omission{
				d, reasonPathConflict,
				fmt.Sprintf("a container gets the device without its %s at %s, because another device of the container has that path", kind, path),
			})
		}
		for _, m := range d.Mounts {
			mount := &plugin.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, ReadOnly: m.ReadOnly}
			switch first := mounts[m.ContainerPath]; {
			case first == nil:
				mounts[m.ContainerPath] = mount
				response.Mounts = append(response.Mounts, mount)
			case first.GetHostPath() != mount.GetHostPath() || first.GetReadOnly() != mount.GetReadOnly():
				conflict("mount", m.ContainerPath)
			}
		}
		for _, f := range d.Files {
			file := &plugin.DeviceSpec{
				ContainerPath: cmp.Or(f.ContainerPath, f.HostPath), HostPath: f.HostPath, Permissions: cmp.Or(f.Permissions, "rw"),
			}
			switch first := files[file.GetContainerPath()]; {
			case first == nil:
				files[file.GetContainerPath()] = file
				response.Devices = append(response.Devices, file)
			case first.GetHostPath() != file.GetHostPath() || first.GetPermissions() != file.GetPermissions():
				conflict("device file", file.GetContainerPath())
			}
		}
	}
	slices.SortStableFunc(response.Devices, func(a, b *plugin.DeviceSpec) int {
		return strings.Compare(a.GetContainerPath(), b.GetContainerPath())
	})
	return response, omissions
}
