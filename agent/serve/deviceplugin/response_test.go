package deviceplugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
)

func camera(name string, properties map[string]string) device.Device {
	return device.Device{
		Instance: types.NamespacedName{Namespace: "default", Name: name}, Configuration: "cam", Properties: properties,
	}
}

func TestEnvironment(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		devices []device.Device
		want    map[string]string
		omitted string // of the message
	}{
		"one device": {
			"a broker of one device reads NAME",
			[]device.Device{camera("cam-1a2b3c", map[string]string{"URL": "a"})},
			map[string]string{"URL": "a", "URL_1A2B3C": "a"}, "",
		},
		"two devices": {
			"NAME is that of the first Instance, whatever the order of the IDs",
			[]device.Device{camera("cam-222222", map[string]string{"URL": "b"}), camera("cam-111111", map[string]string{"URL": "a"})},
			map[string]string{"URL": "a", "URL_111111": "a", "URL_222222": "b"}, "",
		},
		"no mixture": {
			"a password is never combined with the address of another device",
			[]device.Device{
				camera("cam-111111", map[string]string{"URL": "a"}), camera("cam-222222", map[string]string{"URL": "b", "PASSWORD": "b"}),
			},
			map[string]string{"URL": "a", "URL_111111": "a", "URL_222222": "b", "PASSWORD_222222": "b"}, "",
		},
		"two slots of one device": {
			"a container may request several slots of an Instance",
			[]device.Device{camera("cam-111111", map[string]string{"URL": "a"}), camera("cam-111111", map[string]string{"URL": "a"})},
			map[string]string{"URL": "a", "URL_111111": "a"}, "",
		},
		"named like another": {
			"a device cannot replace what another device's NAME_HASH says",
			[]device.Device{
				camera("cam-111111", map[string]string{"URL_222222": "forged"}), camera("cam-222222", map[string]string{"URL": "b"}),
			},
			map[string]string{"URL_222222": "b", "URL_222222_111111": "forged"}, "",
		},
		"invalid": {
			"the container runtime would refuse the container",
			[]device.Device{camera("cam-111111", map[string]string{"": "a", "A=B": "a", "NUL\x00": "a", "VALUE": "\x00", "OK": "a"})},
			map[string]string{"OK": "a", "OK_111111": "a"}, "without 8 environment variables",
		},
		"none": {"a request without IDs has a response, too", nil, map[string]string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response, omissions := respond(tc.devices)
			if !maps.Equal(response.GetEnvs(), tc.want) {
				t.Errorf("%s\n got %.300v\nwant %.300v", tc.reason, response.GetEnvs(), tc.want)
			}
			said := ""
			if len(omissions) == 1 {
				said = omissions[0].what
			}
			if len(omissions) > 1 || (tc.omitted == "") != (said == "") || !strings.Contains(said, tc.omitted) {
				t.Errorf("%s\n got %+v\nwant %q", tc.reason, omissions, tc.omitted)
			}
		})
	}
}

// TestEnvironmentIsBounded checks that a container with many devices can be started.
func TestEnvironmentIsBounded(t *testing.T) {
	const length = 32 << 10
	var devices []device.Device
	for i := range 100 {
		devices = append(devices, camera(fmt.Sprintf("cam-%06d", i), map[string]string{"A": strings.Repeat("x", length)}))
	}
	response, omissions := respond(devices)
	size := 0
	for name, value := range response.GetEnvs() {
		size += len(name) + len(value)
	}
	if size > maxEnvironmentBytes || size < maxEnvironmentBytes-2*length {
		t.Errorf("the environment has %d bytes, want almost %d", size, maxEnvironmentBytes)
	}
	if len(omissions) == 0 || response.GetEnvs()["A_000000"] == "" {
		t.Errorf("%d devices are incomplete; the first: %.10q", len(omissions), response.GetEnvs()["A_000000"])
	}
}

// TestPaths checks the mounts and device files of a container with several devices.
func TestPaths(t *testing.T) {
	a, b := camera("cam-111111", nil), camera("cam-222222", nil)
	a.Mounts = []device.Mount{{ContainerPath: "/etc/cam", HostPath: "/a"}, {ContainerPath: "/lib", HostPath: "/lib", ReadOnly: true}}
	b.Mounts = []device.Mount{{ContainerPath: "/etc/cam", HostPath: "/b"}, {ContainerPath: "/lib", HostPath: "/lib", ReadOnly: true}}
	a.Files = []device.File{{HostPath: "/dev/video1"}, {HostPath: "/dev/bus"}}
	b.Files = []device.File{{HostPath: "/dev/video0"}, {HostPath: "/dev/bus", ContainerPath: "/dev/bus", Permissions: "rw"}}
	response, omissions := respond([]device.Device{b, a})
	var got []string
	for _, m := range response.GetMounts() {
		got = append(got, m.GetHostPath()+":"+m.GetContainerPath())
	}
	for _, f := range response.GetDevices() {
		got = append(got, f.GetContainerPath()+" "+f.GetPermissions())
	}
	if want := []string{"/a:/etc/cam", "/lib:/lib", "/dev/bus rw", "/dev/video0 rw", "/dev/video1 rw"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(omissions) != 1 || omissions[0].device.Instance.Name != "cam-222222" || !strings.Contains(omissions[0].what, "/etc/cam") {
		t.Errorf("omissions %+v", omissions)
	}
}
