package udev

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/udev/details"
)

func parse(t testing.TB, text string) *details.Details {
	t.Helper()
	parsed, err := details.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// rules returns discoveryDetails with rules.
func rules(texts ...string) string {
	list, _ := json.Marshal(texts)
	return "udevRules: " + string(list) + "\n"
}

// found scans a machine and returns the devices.
func found(t testing.TB, m *machine, text string) []discovery.Device {
	t.Helper()
	d := parse(t, text)
	f := newFinder(m.tree(), d)
	if err := f.scan(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return f.devices()
}

// describe returns the id and the properties of each device, in one line each, and the
// container paths of its device files.
func describe(devices []discovery.Device) string {
	var text strings.Builder
	for _, device := range devices {
		fmt.Fprintf(&text, "%s", path.Base(device.ID))
		for _, name := range slices.Sorted(maps.Keys(device.Properties)) {
			if name != DevPathProperty && name != discovery.DisplayName {
				fmt.Fprintf(&text, " %s=%s", strings.TrimPrefix(name, "UDEV_"), device.Properties[name])
			}
		}
		for _, spec := range device.DeviceSpecs {
			if spec.HostPath != spec.ContainerPath {
				fmt.Fprintf(&text, " %s->%s", spec.ContainerPath, spec.HostPath)
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}

// TestDisplayNames checks what people are told that a device is.
func TestDisplayNames(t *testing.T) {
	for name, tc := range map[string]struct{ file, rule, want string }{
		"a camera": {"camera.txt", `KERNEL=="video0"`, "HD Pro Webcam C920 (/dev/video0)"},
		"a stick": {"serial.txt", `SUBSYSTEM=="tty", KERNEL=="ttyUSB0"`,
			"Silicon Labs CP2102N USB to UART Bridge Controller (/dev/ttyUSB0)"},
		"a drive":             {"hid.txt", `KERNEL=="nvme0"`, "Samsung SSD 970 EVO Plus 1TB (/dev/nvme0)"},
		"a port of the board": {"serial.txt", `KERNEL=="ttyS0"`, "/dev/ttyS0"},
	} {
		t.Run(name, func(t *testing.T) {
			devices := found(t, newMachine(t, tc.file), rules(tc.rule))
			if len(devices) != 1 || devices[0].Properties[discovery.DisplayName] != tc.want {
				t.Errorf("got %+v, want %q", devices, tc.want)
			}
		})
	}
}

func TestScan(t *testing.T) {
	for name, tc := range map[string]struct {
		file, details, want string
	}{
		"Akri's rule for cameras": {"camera.txt", rules(`KERNEL=="video[0-9]*"`),
			"video10 DEVNODE=/dev/video10\nvideo0 DEVNODE=/dev/video0\nvideo1 DEVNODE=/dev/video1\n"},
		"by the USB device": {"camera.txt", rules(`SUBSYSTEM=="video4linux", ATTRS{idVendor}=="046d", ATTR{index}=="0"`),
			"video0 DEVNODE=/dev/video0\n"},
		"by a text with spaces": {"camera.txt", rules(`KERNEL=="vid*", ATTRS{product}=="HD Pro*"`, `KERNEL=="vid*", ATTRS{product}=="USB.*"`),
			"video10 DEVNODE=/dev/video10\nvideo0 DEVNODE=/dev/video0\nvideo1 DEVNODE=/dev/video1\n"},
		"by tags": {"camera.txt", rules(`TAG=="uaccess"`), "video0 DEVNODE=/dev/video0\n"},
		"by tags of ancestors": {"camera.txt", rules(`SUBSYSTEM=="sound", TAGS=="seat", KERNEL=="control*"`),
			"controlC1 DEVNODE=/dev/snd/controlC1\n"},
		"a device without a file becomes its ancestor": {"camera.txt", rules(`SUBSYSTEM=="sound", KERNEL=="card*"`),
			"1-4 DEVNODE=/dev/bus/usb/001/004\n"},
		"a whole camera": {"camera.txt", rules(`ATTRS{idVendor}=="046d"`) + "groupRecursive: true",
			"1-4 DEVNODE_0=/dev/bus/usb/001/004 DEVNODE_1=/dev/media0 DEVNODE_2=/dev/video0 DEVNODE_3=/dev/video1 " +
				"DEVNODE_4=/dev/snd/controlC1 DEVNODE_5=/dev/snd/pcmC1D0c\n"},
		"two whole cameras, similar paths": {
			"camera.txt",
			rules(`SUBSYSTEM=="usb", ATTR{idVendor}=="046d|0c45"`, `SUBSYSTEM=="video4linux"`) + "groupRecursive: true",
			"1-4 DEVNODE_0=/dev/bus/usb/001/004 DEVNODE_1=/dev/video0 DEVNODE_2=/dev/video1\n" +
				"1-4.1 DEVNODE_0=/dev/bus/usb/001/010 DEVNODE_1=/dev/video10\n",
		},
		"the example usb-camera": {
			"camera.txt", rules(`SUBSYSTEM=="usb", DRIVER=="uvcvideo"`, `SUBSYSTEM=="video4linux", DRIVERS=="uvcvideo", ATTR{index}=="0"`) +
				"groupRecursive: true\nproperties: {MODEL: 'ATTRS{product}'}",
			"1-4 MODEL=HD Pro Webcam C920 DEVNODE_0=/dev/bus/usb/001/004 DEVNODE_1=/dev/video0\n" +
				"1-4.1 MODEL=USB Camera DEVNODE_0=/dev/bus/usb/001/010 DEVNODE_1=/dev/video10\n",
		},
		"no common ancestor": {"camera.txt", rules(`KERNEL=="video[01]"`) + "groupRecursive: true",
			"video0 DEVNODE_0=/dev/video0\nvideo1 DEVNODE_0=/dev/video1\n"},
		"links": {"camera.txt", rules(`KERNEL=="video1"`) + "symlinks: true",
			"video1 DEVNODE=/dev/video1 /dev/v4l/by-id/usb-046d_HD_Pro_Webcam_C920_5A2B1C3D-video-index1->/dev/video1\n"},
		"a stick by its serial number": {"serial.txt", rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4", ATTRS{idProduct}=="ea60"`) +
			"properties: {SERIAL: 'ENV{ID_SERIAL_SHORT}', MAKER: 'ATTRS{manufacturer}', NOTHING: 'ATTR{x}', DRIVER: DRIVER}\n" +
			"id: ENV{ID_SERIAL}\nsymlinks: true",
			"Silicon_Labs_CP2102N_0a1b2c3d4e5f MAKER=Silicon Labs SERIAL=0a1b2c3d4e5f DEVNODE=/dev/ttyUSB0" +
				" /dev/serial/by-id/usb-Silicon_Labs_CP2102N_0a1b2c3d4e5f-if00-port0->/dev/ttyUSB0" +
				" /dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0->/dev/ttyUSB0\n"},
		"one id for two devices": {"serial.txt", rules(`SUBSYSTEM=="tty", DRIVERS=="ftdi_sio"`) + "id: ENV{ID_SERIAL}",
			"ttyUSB1 DEVNODE=/dev/ttyUSB1\nttyUSB2 DEVNODE=/dev/ttyUSB2\n"},
		"an id of two parts": {"serial.txt", rules(`SUBSYSTEM=="tty", DRIVERS=="option"`) + "id: ENV{ID_SERIAL} ENV{ID_USB_INTERFACE_NUM}",
			"Quectel_EC25-E 00 DEVNODE=/dev/ttyUSB3\nQuectel_EC25-E 02 DEVNODE=/dev/ttyUSB5\n"},
		"an id without a value":   {"serial.txt", rules(`KERNEL=="ttyS0"`) + "id: ENV{ID_SERIAL}", "ttyS0 DEVNODE=/dev/ttyS0\n"},
		"an id that lacks a part": {"serial.txt", rules(`KERNEL=="ttyS0"`) + "id: SUBSYSTEM ENV{ID_SERIAL}", "ttyS0 DEVNODE=/dev/ttyS0\n"},
		"a modem": {"serial.txt", rules(`ATTRS{idProduct}=="0125"`) + "groupRecursive: true\nid: ENV{ID_SERIAL}",
			"Quectel_EC25-E DEVNODE_0=/dev/bus/usb/003/005 DEVNODE_1=/dev/cdc-wdm0 DEVNODE_2=/dev/ttyUSB3 DEVNODE_3=/dev/ttyUSB5\n"},
		"not on USB": {"serial.txt", rules(`SUBSYSTEM=="tty", SUBSYSTEMS!="usb", KERNEL!="tty[0-9]*"`), "ttyS0 DEVNODE=/dev/ttyS0\n"},
		"an HID":     {"hid.txt", rules(`SUBSYSTEM=="hidraw", KERNELS=="0003:05E0:*"`), "hidraw2 DEVNODE=/dev/hidraw2\n"},
		"quoted values of the kernel": {"hid.txt", rules(`SUBSYSTEM=="input", ENV{PHYS}=="?usb-*"`) + "properties: {NAME: 'ENV{NAME}'}",
			"1-7 NAME=\"Symbol Bar Code Scanner\" DEVNODE=/dev/bus/usb/001/007\n"},
		"an attribute in a directory": {
			"hid.txt", rules(`SUBSYSTEM=="block", ATTR{queue/rotational}=="0"`),
			"nvme0n1 DEVNODE=/dev/nvme0n1\n",
		},
		"padding": {
			"hid.txt", rules(`SUBSYSTEM=="nvme", ATTR{model}=="Samsung*1TB"`) + "properties: {M: 'ATTR{model}'}",
			"nvme0 M=Samsung SSD 970 EVO Plus 1TB DEVNODE=/dev/nvme0\n",
		},
		"a disk and its parts": {
			"hid.txt", rules(`SUBSYSTEM=="block", KERNEL=="nvme*"`) + "groupRecursive: true",
			"nvme0n1 DEVNODE_0=/dev/nvme0n1 DEVNODE_1=/dev/nvme0n1p1\n",
		},
		"a slash in the name":        {"hid.txt", rules(`KERNEL=="cciss/c*"`), "cciss!c0d0 DEVNODE=/dev/cciss/c0d0\n"},
		"the driver as an attribute": {"hid.txt", rules(`ATTR{driver}=="hid-generic"`), "1-7 DEVNODE=/dev/bus/usb/001/007\n"},
		"the path":                   {"hid.txt", rules(`DEVPATH=="*/hidraw/*"`), "hidraw2 DEVNODE=/dev/hidraw2\n"},
		"none":                       {"hid.txt", rules(`SUBSYSTEM=="video4linux"`), ""},
		"a network interface": {
			"serial.txt", rules(`SUBSYSTEM=="net", ENV{ID_NET_DRIVER}=="qmi_wwan"`),
			"3-4 DEVNODE=/dev/bus/usb/003/005\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(found(t, newMachine(t, tc.file), tc.details)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// TestAkrisIDs compares ids and properties with those of Akri, so that Instances keep
// their names.
func TestAkrisIDs(t *testing.T) {
	const stick = "/devices/pci0000:00/0000:00:14.0/usb3/3-1/3-1:1.0/ttyUSB0/tty/ttyUSB0"
	devices := found(t, newMachine(t, "serial.txt"), rules(`KERNEL=="ttyUSB0", SUBSYSTEM=="tty"`)+"permissions: rw")
	want := []discovery.Device{{
		ID: stick, Properties: map[string]string{"UDEV_DEVPATH": stick, "UDEV_DEVNODE": "/dev/ttyUSB0"},
		DeviceSpecs: []discovery.DeviceSpec{{ContainerPath: "/dev/ttyUSB0", HostPath: "/dev/ttyUSB0", Permissions: "rw"}},
	}}
	delete(devices[0].Properties, discovery.DisplayName) // which Akri's does not have
	if got, want := fmt.Sprintf("%+v", devices), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPassThrough(t *testing.T) {
	m, enough := newMachine(t, "hid.txt"), errors.New("enough")
	show := func(resource, vfio string) string {
		t.Helper()
		var text strings.Builder
		request := discovery.Request{
			Details:    rules(`SUBSYSTEM=="pci", DRIVER=="vfio-pci"`, `SUBSYSTEM=="usb", ATTR{idVendor}=="05e0"`),
			Properties: map[string][]byte{"devicePluginResourceName": []byte(resource), "vfioPassthrough": []byte(vfio)},
		}
		err := m.handler().Discover(t.Context(), request, func(devices []discovery.Device) error {
			for _, device := range devices {
				text.WriteString(describe([]discovery.Device{device}))
				for _, spec := range device.DeviceSpecs {
					fmt.Fprintf(&text, "  %s %s\n", spec.HostPath, spec.Permissions)
				}
			}
			return enough
		})
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
		return text.String()
	}
	const usb = "  /dev/bus/usb/001/007 rwm\n"
	for _, tc := range []struct {
		resource, vfio, want string
	}{
		{"", "true", "0000:01:00.0\n1-7 DEVNODE=/dev/bus/usb/001/007\n" + usb},
		{"akri.sh/udev-gpu", "false", "0000:01:00.0 PCI_RESOURCE_AKRI_SH_UDEV-GPU=0000:01:00.0\n" +
			"1-7 DEVNODE=/dev/bus/usb/001/007 USB_RESOURCE_AKRI_SH_UDEV-GPU=1:7\n" + usb},
		{" akri.sh/udev-gpu\n", " True\n", "0000:01:00.0 PCI_RESOURCE_AKRI_SH_UDEV-GPU=0000:01:00.0\n" +
			"  /dev/vfio/12 rwm\n  /dev/vfio/vfio rwm\n1-7 DEVNODE=/dev/bus/usb/001/007 USB_RESOURCE_AKRI_SH_UDEV-GPU=1:7\n" + usb},
	} {
		if got := show(tc.resource, tc.vfio); got != tc.want {
			t.Errorf("%q, %q: got\n%s\nwant\n%s", tc.resource, tc.vfio, got, tc.want)
		}
	}
}

// TestPassThroughOfAGroup has a hub with two devices. KubeVirt looks for one variable.
func TestPassThroughOfAGroup(t *testing.T) {
	m := newMachine(t)
	for i, port := range []string{"2-3", "2-3/2-3.1", "2-3/2-3.2"} {
		m.plug(fmt.Sprintf("/devices/pci0000:00/usb2/%s\n  subsystem bus/usb\n  MAJOR=189\n  MINOR=%d\n  DEVNAME=bus/usb/002/00%d\n", port, i, i))
	}
	f := newFinder(m.tree(), parse(t, rules(`SUBSYSTEM=="usb", KERNEL=="2-3.*"`, `KERNEL=="2-3"`)+"groupRecursive: true"))
	m.must(f.scan(t.Context(), time.Now()))
	f.resource = "akri.sh/desk"
	const want = "2-3 DEVNODE_0=/dev/bus/usb/002/000 DEVNODE_1=/dev/bus/usb/002/001 DEVNODE_2=/dev/bus/usb/002/002 " +
		"USB_RESOURCE_AKRI_SH_DESK=2:0,2:1,2:2\n"
	if got := describe(f.devices()); got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

// TestHostileNames has texts that devices and their drivers choose.
func TestHostileNames(t *testing.T) {
	m := newMachine(t)
	m.plug("/devices/a/input1\n  subsystem class/input\n  MAJOR=13\n  MINOR=1\n  DEVNAME=input/event1\n" +
		"  attr name A\xff\x00\x1bB\n  db S:../../etc/shadow\n  db S:by-\xff\n  db S:input/ok\n  db E:X=\xfe\n")
	m.plug("/devices/a/\xff\n  subsystem class/input\n  attr name C\n")
	m.plug("/devices/a/input2\n  subsystem class/input\n  MAJOR=13\n  MINOR=2\n  DEVNAME=../etc/passwd\n")
	got := describe(found(t, m, rules(`SUBSYSTEM=="input"`)+"symlinks: true\nproperties: {NAME: 'ATTR{name}', X: 'ENV{X}'}"))
	const want = "input1 NAME=A\uFFFD\uFFFD\uFFFDB DEVNODE=/dev/input/event1 X=\uFFFD /dev/input/ok->/dev/input/event1\ninput2\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPrintable keeps what texts of several lines consist of.
func TestPrintable(t *testing.T) {
	if got, want := printable("a\tb\nc\r\x7fé\xc3"), "a\tb\nc\uFFFD\uFFFDé\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestValuesOfTheDeviceFile has two devices without a device file, which stand for the one
// above them: their own values count only for what that one lacks.
func TestValuesOfTheDeviceFile(t *testing.T) {
	m := newMachine(t)
	m.plug("/devices/x\n  subsystem class/tty\n  MAJOR=4\n  MINOR=1\n  DEVNAME=tty1\n  attr name above\n" +
		"/devices/x/y\n  subsystem class/input\n  attr name below\n  attr own 1\n" +
		"/devices/x/z\n  subsystem class/input\n  attr own 2\n")
	devices := found(t, m, rules(`SUBSYSTEM=="input"`)+"properties: {NAME: 'ATTR{name}', OWN: 'ATTR{own}'}")
	got, want := describe(devices), "x NAME=above OWN=1 DEVNODE=/dev/tty1\n"
	if got != want || len(devices[0].DeviceSpecs) != 1 {
		t.Errorf("got %q, want %q; the device files are %v", got, want, devices[0].DeviceSpecs)
	}
}

// TestRefresh compares what the finder knows after events with what a scan finds.
func TestRefresh(t *testing.T) {
	m := newMachine(t, "serial.txt")
	d := parse(t, rules(`ATTRS{idVendor}=="10c4|0403|05e0"`)+"groupRecursive: true")
	f := newFinder(m.tree(), d)
	if err := f.scan(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	check := func(event string, devPaths ...string) {
		t.Helper()
		if !f.refresh(t.Context(), time.Now(), devPaths) {
			t.Fatalf("%s: incomplete", event)
		}
		fresh := newFinder(m.tree(), d)
		if err := fresh.scan(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		got, want := slices.Sorted(maps.Keys(f.matches)), slices.Sorted(maps.Keys(fresh.matches))
		if !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", event, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	const hubPath = "/devices/pci0000:00/0000:00:14.0/usb3"
	check("nothing")
	check("a change of nothing", hubPath+"/3-1")
	m.unplug(hubPath + "/3-1/3-1:1.0/ttyUSB0")
	check("a port is removed", hubPath+"/3-1/3-1:1.0/ttyUSB0")
	m.unplug(hubPath + "/3-1")
	check("the adapter is removed", hubPath+"/3-1")
	m.plug(hubPath + "/3-11\n  subsystem bus/usb\n  MAJOR=189\n  MINOR=300\n  DEVNAME=bus/usb/003/045\n  attr idVendor 10c4\n")
	check("another is added, whose path begins like that of one that is gone", hubPath+"/3-11", hubPath+"/3-1")
	m.unplug(hubPath + "/3-2")
	m.unplug(hubPath + "/3-3")
	check("a hubPath is removed", hubPath)
	m.write("05e0\n", m.sys, hubPath, "3-4", "idVendor")
	check("an attribute changes that matters below", hubPath+"/3-4")
	if len(f.matches) < 5 {
		t.Errorf("only %d devices are left", len(f.matches))
	}
}

// TestTooManyDevices has more devices than the bound. Those that are known keep their
// places.
func TestTooManyDevices(t *testing.T) {
	m := newMachine(t)
	plug := func(name string) {
		m.plug("/devices/x/" + name + "\n  subsystem class/tty\n  MAJOR=4\n  MINOR=" + name + "\n  DEVNAME=tty" + name + "\n")
	}
	read, _, failures := m.faulty()
	f := newFinder(read, parse(t, rules(`SUBSYSTEM=="tty"`)))
	f.maxMatches = 3
	check := func(event string, refused int, want ...string) {
		t.Helper()
		m.must(f.scan(t.Context(), time.Now()))
		var got []string
		for _, devPath := range slices.Sorted(maps.Keys(f.matches)) {
			got = append(got, path.Base(devPath))
		}
		if !slices.Equal(got, want) || failures.of(failedTooMany) != refused {
			t.Errorf("%s: %q, %d were refused; want %q, %d", event, got, failures.of(failedTooMany), want, refused)
		}
	}
	plug("5")
	plug("6")
	plug("7")
	check("as many", 0, "5", "6", "7")
	plug("1")
	check("one more", 1, "5", "6", "7")
	m.unplug("/devices/x/6")
	check("room for it", 1, "1", "5", "7")
}

// TestLargeValues has values that are too large together.
func TestLargeValues(t *testing.T) {
	m := newMachine(t)
	long := strings.Repeat("x", maxMatchBytes-10)
	m.plug("/devices/x\n  subsystem class/tty\n  attr a " + long + "\n  attr b " + long + "\n  attr c short\n  db E:ID=id\n")
	read, _, failures := m.faulty()
	d := parse(t, rules(`SUBSYSTEM=="tty"`)+"id: ATTR{c}\nproperties: {A: 'ATTR{a}', B: 'ATTR{b}', C: 'ATTR{c}'}")
	f := newFinder(read, d)
	m.must(f.scan(t.Context(), time.Now()))
	want := "short A=" + long + " C=short\n"
	if got := describe(f.devices()); got != want || failures.of(failedTooLarge) != 1 {
		t.Errorf("%d failures, and got\n%s\nwant\n%s", failures.of(failedTooLarge), got, want)
	}
}
