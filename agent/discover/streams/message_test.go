package streams

import (
	"strings"
	"testing"
	"time"

	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

// A device that needs what is not permitted is known, but no container gets it.
func TestDevicesWithForbiddenPathsAreRefused(t *testing.T) {
	rules, err := hostpaths.Parse([]string{"*=/dev"})
	if err != nil {
		t.Fatal(err)
	}
	message := &protocol.DiscoverResponse{Devices: []*protocol.Device{
		{Id: "camera", DeviceSpecs: []*protocol.DeviceSpec{{ContainerPath: "/dev/video0", HostPath: "/dev//video0", Permissions: "rw"}}},
		{Id: "disk", DeviceSpecs: []*protocol.DeviceSpec{
			{ContainerPath: "/dev/a", HostPath: "/dev/a", Permissions: "rw"}, {ContainerPath: "/x", HostPath: "/proc/kcore", Permissions: "r"},
		}},
		{Id: "root", Mounts: []*protocol.Mount{{ContainerPath: "/host", HostPath: "/"}}},
	}}
	devices, complaint := devicesOf(message, registry.Entry{Endpoint: usb}, hostpaths.Policy{DeviceFiles: rules})
	if complaint != "" || len(devices) != 3 {
		t.Fatalf("%d devices, complaint %q", len(devices), complaint)
	}
	if d := devices[0]; d.Refused != "" || len(d.Files) != 1 || d.Files[0].HostPath != "/dev/video0" {
		t.Errorf("the permitted device is %+v", d)
	}
	for i, wanted := range map[int][]string{
		1: {`device "disk"`, "/proc/kcore", "--allow-device-files=h=/proc/kcore"},
		2: {`device "root"`, `mount of "/"`, "--allow-mounts=h=/ to"},
	} {
		d := devices[i]
		for _, part := range wanted {
			if !strings.Contains(d.Refused, part) {
				t.Errorf("the refusal is %q, want %q", d.Refused, part)
			}
		}
		if len(d.Files) != 0 || len(d.Mounts) != 0 {
			t.Errorf("a refused device has %v and %v", d.Files, d.Mounts)
		}
	}

	v := newView(time.Unix(0, 0))
	v.Expect([]registry.Entry{{Endpoint: usb}})
	v.Opened(usb, false, time.Unix(0, 0))
	v.Received(usb, devices, "", time.Unix(0, 0))
	if got, want := textOf(v.At(time.Unix(1, 0))), "camera (disk) (root) settled"; got != want {
		t.Errorf("the snapshot is %q, want %q", got, want)
	}
}
