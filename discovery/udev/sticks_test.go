package udev

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/discovery"
)

const (
	sticksPage   = "../../docs/usb-sticks.md"
	firstPage    = "../../docs/first-device.md"
	stickExample = "../../examples/usb-serial/configuration.yaml"

	cdcStick = "/devices/pci0000:00/0000:00:14.0/usb1/1-5/1-5:1.0"
	coral    = "/devices/pci0000:00/0000:00:14.0/usb1/1-6"
)

// read returns a file of the documentation.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documented returns the discoveryDetails of the Configurations for udev in a page or a
// manifest, by their names.
func documented(t *testing.T, file string) map[string]string {
	t.Helper()
	text := read(t, file)
	blocks := []string{text}
	if strings.HasSuffix(file, ".md") {
		blocks = nil
		for _, match := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(text, -1) {
			blocks = append(blocks, match[1])
		}
	}
	found := map[string]string{}
	for _, block := range blocks {
		var c struct {
			Metadata struct{ Name string }
			Spec     struct {
				DiscoveryHandler struct{ Name, DiscoveryDetails string }
			}
		}
		if err := yaml.Unmarshal([]byte(block), &c); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, block)
		}
		if c.Spec.DiscoveryHandler.Name == Name {
			found[c.Metadata.Name] = c.Spec.DiscoveryHandler.DiscoveryDetails
		}
	}
	return found
}

// nodes returns the device files of devices, and what containers get at other paths.
func nodes(devices []discovery.Device) string {
	var all []string
	for _, d := range devices {
		for _, spec := range d.DeviceSpecs {
			switch name := strings.TrimPrefix(spec.HostPath, "/dev/"); {
			case spec.ContainerPath == spec.HostPath:
				all = append(all, name)
			case !strings.HasPrefix(spec.ContainerPath, "/dev/serial/"): // udev's links
				all = append(all, name+" at "+spec.ContainerPath)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// TestDocumentedConfigurations compares what the Configurations in the documentation find
// with what it says: every serial stick, whatever its driver, or only those that are meant.
func TestDocumentedConfigurations(t *testing.T) {
	m := newMachine(t, "sticks.txt")
	for file, want := range map[string]map[string]string{
		firstPage:    {"serial": "ttyACM0, ttyACM1, ttyUSB0, ttyUSB1, ttyUSB2, ttyUSB3"},
		stickExample: {"zigbee": "ttyACM0, ttyACM0 at /dev/zigbee, ttyUSB0, ttyUSB0 at /dev/zigbee"},
		sticksPage: {
			"zigbee": "ttyUSB0, ttyUSB0 at /dev/zigbee",
			"zwave":  "ttyACM1, ttyACM1 at /dev/zwave",
			"coral":  "bus/usb/001/007",
		},
	} {
		got := map[string]string{}
		for name, text := range documented(t, file) {
			got[name] = nodes(found(t, m, text))
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", file, got, want)
		}
	}
}

// TestRulesOfSticks compares each rule in the table of the page with the sticks.
func TestRulesOfSticks(t *testing.T) {
	m := newMachine(t, "sticks.txt")
	tested := map[string]string{
		"10c4:ea60": "ttyUSB0", "1a86:7523": "ttyUSB1", "0403:6010, the second port": "ttyUSB3", "1cf1:0030": "ttyACM0", "0658:0200": "ttyACM1",
	}
	row := regexp.MustCompile("(?m)^\\|.*\\| `([0-9a-f]{4}:[0-9a-f]{4})`([^|]*)\\| `([^`]+)` \\|$")
	rows := row.FindAllStringSubmatch(read(t, sticksPage), -1)
	if len(rows) < len(tested) {
		t.Errorf("the table has %d rules, want %d or more", len(rows), len(tested))
	}
	for _, row := range rows {
		ids := row[1] + strings.TrimRight(row[2], " ")
		if got := nodes(found(t, m, rules(row[3]))); got != tested[ids] {
			t.Errorf("%s, %s: found %q, want %q", ids, row[3], got, tested[ids])
		}
		delete(tested, ids)
	}
	if len(tested) > 0 {
		t.Errorf("the table lacks %v", tested)
	}
}

// TestStickComesBack has a stick that re-enumerates while a program has its file open, so
// that the kernel gives it another name: the device keeps its id, and containers their path.
func TestStickComesBack(t *testing.T) {
	m := newMachine(t, "sticks.txt")
	h := m.handler()
	l := discover(t, h, documented(t, sticksPage)["zwave"])
	l.want(t, "0658_0200 DEVNODE=/dev/ttyACM1 /dev/zwave->/dev/ttyACM1\n")
	m.unplug(cdcStick)
	h.hub.publish(cdcStick)
	l.want(t, "")
	m.plug(cdcStick + "/tty/ttyACM2\n  subsystem class/tty\n  MAJOR=166\n  MINOR=2\n  DEVNAME=ttyACM2\n  db E:ID_SERIAL=0658_0200\n")
	h.hub.publish(cdcStick + "/tty/ttyACM2")
	l.want(t, "0658_0200 DEVNODE=/dev/ttyACM2 /dev/zwave->/dev/ttyACM2\n")
}

// TestCoralChangesItsIDs has a Coral that gets its firmware from the first program that uses
// it: it comes back with other numbers of vendor and product, and another file.
func TestCoralChangesItsIDs(t *testing.T) {
	m := newMachine(t, "sticks.txt")
	h := m.handler()
	l := discover(t, h, documented(t, sticksPage)["coral"])
	l.want(t, "1-6 DEVNODE=/dev/bus/usb/001/007\n")
	m.unplug(coral)
	h.hub.publish(coral)
	l.want(t, "")
	m.plug(coral + "\n  subsystem bus/usb\n  MAJOR=189\n  MINOR=7\n  DEVNAME=bus/usb/001/008\n  attr idVendor 18d1\n  attr idProduct 9302\n")
	h.hub.publish(coral)
	l.want(t, "1-6 DEVNODE=/dev/bus/usb/001/008\n")
}

// TestContainerPath compares the paths at which a container gets files: none is there twice.
func TestContainerPath(t *testing.T) {
	const (
		stick = `KERNEL=="ttyACM1"`
		link  = "/dev/serial/by-id/usb-0658_0200-if00"
	)
	for name, tc := range map[string]struct{ file, details, want string }{
		"beside its own": {"sticks.txt", rules(stick) + "containerPath: /dev/zwave", "/dev/ttyACM1 /dev/zwave"},
		"its own":        {"sticks.txt", rules(stick) + "containerPath: /dev/ttyACM1", "/dev/ttyACM1"},
		"with links": {"sticks.txt", rules(stick) + "symlinks: true\ncontainerPath: /dev/zwave",
			"/dev/ttyACM1 " + link + " /dev/zwave"},
		"a link":                {"sticks.txt", rules(stick) + "symlinks: true\ncontainerPath: " + link, "/dev/ttyACM1 " + link},
		"without a device file": {"sticks.txt", rules(`KERNEL=="0000:00:14.0"`) + "containerPath: /dev/controller", ""},
		"a group": {"camera.txt", rules(`KERNEL=="video[01]|1-4"`) + "groupRecursive: true\ncontainerPath: /dev/camera",
			"/dev/bus/usb/001/004 /dev/camera_0 /dev/video0 /dev/camera_1 /dev/video1 /dev/camera_2"},
		"a group of one": {"sticks.txt", rules(stick) + "groupRecursive: true\ncontainerPath: /dev/zwave", "/dev/ttyACM1 /dev/zwave_0"},
	} {
		devices := found(t, newMachine(t, tc.file), tc.details)
		if len(devices) != 1 {
			t.Errorf("%s: %d devices", name, len(devices))
			continue
		}
		var paths []string
		for _, spec := range devices[0].DeviceSpecs {
			paths = append(paths, spec.ContainerPath)
		}
		if got := strings.Join(paths, " "); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
