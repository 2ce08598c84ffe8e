package hostpaths

import (
	"strings"
	"testing"

	"akri.sh/akri/agent/device"
)

func parse(t *testing.T, values ...string) Rules {
	t.Helper()
	rules, err := Parse(values)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func file(inContainer, onHost, permissions string) device.File {
	return device.File{ContainerPath: inContainer, HostPath: onHost, Permissions: permissions}
}

func TestDeviceFiles(t *testing.T) {
	usual := []string{"*=/dev"}
	for name, tc := range map[string]struct {
		rules   []string
		handler Handler
		file    device.File
		want    string // the path; empty: refused
		reason  string // part of the message
	}{
		"below /dev":       {usual, Handler{Name: "udev"}, file("/dev/a", "/dev/video0", "rwm"), "/dev/video0", ""},
		"clean":            {usual, Handler{Name: "udev"}, file("/dev/a", "//dev/./bus//usb/", ""), "/dev/bus/usb", ""},
		"elsewhere":        {usual, Handler{Name: "udev"}, file("/dev/a", "/etc/shadow", "r"), "", "--allow-device-files=udev=/etc/shadow:ro to"},
		"a similar prefix": {usual, Handler{Name: "udev"}, file("/dev/a", "/devil", "r"), "", "not permitted"},
		"upwards":          {usual, Handler{Name: "udev"}, file("/dev/a", "/dev/../etc/shadow", "r"), "", "without .."},
		"relative":         {usual, Handler{Name: "udev"}, file("/dev/a", "dev/video0", "r"), "", "absolute path"},
		"in the container": {usual, Handler{Name: "udev"}, file("/dev/../proc/x", "/dev/video0", "r"), "", "/dev/../proc/x"},
		"permissions":      {usual, Handler{Name: "udev"}, file("/dev/a", "/dev/video0", "rx"), "", "subset of rwm"},
		"on the network": {
			usual, Handler{Name: "onvif", Network: true},
			file("/dev/a", "/dev/video0", "r"), "", "onvif@network=/dev/video0:ro",
		},
		"permitted on the network": {
			[]string{"onvif@network=/dev/x"}, Handler{Name: "onvif", Network: true},
			file("/dev/a", "/dev/x/1", "rw"), "/dev/x/1", "",
		},
		"for another name":       {[]string{"udev=/dev"}, Handler{Name: "x"}, file("/dev/a", "/dev/v", "r"), "", "--allow-device-files=x="},
		"read-only":              {[]string{"udev=/dev:ro"}, Handler{Name: "udev"}, file("/dev/a", "/dev/v", "r"), "/dev/v", ""},
		"writable but read-only": {[]string{"udev=/dev:ro"}, Handler{Name: "udev"}, file("/dev/a", "/dev/v", "rw"), "", "not permitted"},
		"none for it":            {[]string{"udev="}, Handler{Name: "udev"}, file("/dev/a", "/dev/v", "r"), "", "=udev=/dev/v:ro "},
		"a rule in the path":     {usual, Handler{Name: "udev"}, file("/dev/a", "/x,*=/", "rw"), "", "=udev=DIRECTORY to the agents'"},
		"an option in the path":  {usual, Handler{Name: "udev"}, file("/dev/a", "/x --a=b", "rw"), "", "=udev=DIRECTORY to the agents'"},
		"nothing":                {[]string{"*="}, Handler{Name: "udev"}, file("/dev/a", "/dev/v", "r"), "", "not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Policy{DeviceFiles: parse(t, tc.rules...)}.DeviceFile(tc.handler, tc.file)
			if tc.want != "" {
				if err != nil || got.HostPath != tc.want {
					t.Errorf("got %+v, %v; want %s", got, err, tc.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.reason) {
				t.Fatalf("got %v, want an error with %q", err, tc.reason)
			}
			_, flag, found := strings.Cut(err.Error(), "--allow-device-files=")
			if rule, _, _ := strings.Cut(flag, " "); found && !strings.Contains(rule, "DIRECTORY") {
				more := Policy{DeviceFiles: append(parse(t, tc.rules...), parse(t, rule)...)}
				if _, err := more.DeviceFile(tc.handler, tc.file); err != nil {
					t.Errorf("with the rule that is advised: %v", err)
				}
			}
		})
	}
}

func TestMounts(t *testing.T) {
	policy := Policy{DeviceFiles: parse(t, "*=/"), Mounts: parse(t, "gpu=/opt/gpu", "gpu=/etc/gpu:ro", "root=/")}
	for name, tc := range map[string]struct {
		handler   string
		mount     device.Mount
		permitted bool
	}{
		"the directory itself":     {"gpu", device.Mount{ContainerPath: "/gpu", HostPath: "/opt/gpu"}, true},
		"below":                    {"gpu", device.Mount{ContainerPath: "/gpu", HostPath: "/opt/gpu/lib"}, true},
		"above":                    {"gpu", device.Mount{ContainerPath: "/gpu", HostPath: "/opt"}, false},
		"read-only":                {"gpu", device.Mount{ContainerPath: "/gpu", HostPath: "/etc/gpu", ReadOnly: true}, true},
		"writable":                 {"gpu", device.Mount{ContainerPath: "/gpu", HostPath: "/etc/gpu"}, false},
		"rules for device files":   {"udev", device.Mount{ContainerPath: "/dev", HostPath: "/dev", ReadOnly: true}, false},
		"everything":               {"root", device.Mount{ContainerPath: "/x", HostPath: "/x"}, true},
		"no path in the container": {"root", device.Mount{HostPath: "/x"}, false},
	} {
		if _, err := policy.Mount(Handler{Name: tc.handler}, tc.mount); (err == nil) != tc.permitted {
			t.Errorf("%s: got %v, want permitted: %t", name, err, tc.permitted)
		}
	}
}

func TestParse(t *testing.T) {
	for _, value := range []string{"/dev", "udev", "=/dev", "udev=dev", "udev=/dev/../etc", "udev=:ro", "*@network=/dev", "@network=/dev"} {
		if _, err := Parse([]string{value}); err == nil || !strings.Contains(err.Error(), "want HANDLER=DIRECTORY") {
			t.Errorf("%q: got %v, want an error", value, err)
		}
	}
}
