package udev

import (
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"akri.sh/akri/discovery/udev/details"
)

// A snapshot keeps so many attributes of a device, none of them longer. Others are read
// each time: rules may name thousands.
const (
	maxCachedAttributes = 32
	maxCachedBytes      = 1024
)

// snapshot caches what is read about devices during one evaluation. It is not safe for
// concurrent use.
type snapshot struct {
	*tree
	devices map[string]*sysDevice
	// missed is whether something that was requested could not be read.
	missed bool
	// open is how long something has left open what is known of the device that is judged.
	open time.Duration
	// udevd is whether devices that have no entry in udevd's database will get one, and
	// usesDatabase whether the database was looked at.
	udevd, usesDatabase bool
}

func (t *tree) snapshot() *snapshot { return &snapshot{tree: t, devices: map[string]*sysDevice{}} }

// device returns the device at a path, which must exist.
func (s *snapshot) device(devPath string) *sysDevice {
	device := s.devices[devPath]
	if device == nil {
		device = &sysDevice{path: devPath, tree: s}
		s.devices[devPath] = device
	}
	return device
}

// sysDevice is a device in sysfs. Its files are read when they are needed.
type sysDevice struct {
	path string
	tree *snapshot

	kernel      map[string]string // the file uevent; nil if it has not been parsed
	database    *databaseRecord   // nil if it has not been read
	databaseErr error             // why it could not be read, or nil
	attributes  map[string]attribute
	parent      *sysDevice
	hasParent   bool // parent is known
	// considered is whether the device has been compared with the rules.
	considered bool
}

type attribute struct {
	value string
	found bool
	err   error // why it could not be read, or nil
}

var _ details.Device = (*sysDevice)(nil)

// DevPath implements [details.Device].
func (d *sysDevice) DevPath() string { return d.path }

// Kernel implements [details.Device].
func (d *sysDevice) Kernel() string { return kernelName(path.Base(d.path)) }

// kernelName returns a device's name. In sysfs, slashes are exclamation marks.
func kernelName(base string) string { return strings.ReplaceAll(base, "!", "/") }

// Subsystem implements [details.Device].
func (d *sysDevice) Subsystem() string { return d.text("subsystem") }

// Driver implements [details.Device].
func (d *sysDevice) Driver() string { return d.text("driver") }

func (d *sysDevice) text(name string) string {
	value, _ := d.Attr(name)
	return value
}

// note records that something could not be read.
func (s *snapshot) note(err error) {
	switch {
	case err == nil, isOfDriver(err) && s.open > errorPatience, errors.Is(err, errNoEntry) && s.open >= udevdTimeout:
	default:
		s.missed = true
	}
}

// errNoEntry means that udevd has not yet added a device to its database. It adds all that
// have a device file or are network interfaces.
var errNoEntry = errors.New("udevd has not finished")

// Unread implements [details.Device].
func (d *sysDevice) Unread() bool {
	missed := d.tree.missed
	d.tree.missed = false
	return missed
}

// Attr implements [details.Device].
func (d *sysDevice) Attr(name string) (value string, found bool) {
	a, known := d.attributes[name]
	if !known {
		a.value, a.found, a.err = d.tree.attribute(d.path, name)
		a.err = d.tree.unread(a.err)
		if d.attributes == nil {
			d.attributes = map[string]attribute{}
		}
		if len(d.attributes) < maxCachedAttributes && len(a.value) <= maxCachedBytes {
			d.attributes[name] = a
		}
	}
	d.tree.note(a.err)
	return a.value, a.found
}

// Env implements [details.Device].
func (d *sysDevice) Env(name string) (value string, found bool) {
	switch name {
	case "DEVPATH":
		return d.path, true
	case "SUBSYSTEM":
		return d.Subsystem(), d.Subsystem() != ""
	case "DRIVER":
		return d.Driver(), d.Driver() != ""
	case "DEVNAME":
		return d.node(), d.node() != ""
	case "DEVTYPE", "IFINDEX", "MAJOR", "MINOR", "MODALIAS": // udev never changes these
		value, found = d.uevent()[name]
		return value, found
	}
	data := d.data()
	switch name {
	case "TAGS":
		return joined(":", data.tags)
	case "CURRENT_TAGS":
		return joined(":", data.currentTags)
	case "DEVLINKS":
		return strings.Join(data.links, " "), len(data.links) > 0
	case "USEC_INITIALIZED":
		return data.initialized, data.initialized != ""
	}
	if value, found = data.properties[name]; found {
		return value, true
	}
	value, found = d.uevent()[name]
	return value, found
}

// joined returns the elements with a separator between, before and after them.
func joined(separator string, elements []string) (value string, found bool) {
	return separator + strings.Join(elements, separator) + separator, len(elements) > 0
}

// Tags implements [details.Device].
func (d *sysDevice) Tags() []string { return d.data().tags }

// Parent implements [details.Device].
func (d *sysDevice) Parent() details.Device {
	if parent := d.above(); parent != nil {
		return parent
	}
	return nil
}

// above returns the next device above, or nil. Directories without the file uevent only
// structure sysfs.
func (d *sysDevice) above() *sysDevice {
	if d.hasParent {
		return d.parent
	}
	d.hasParent = true
	for up := path.Dir(d.path); isDevPath(up); up = path.Dir(up) {
		if _, known := d.tree.devices[up]; known || d.tree.exists(up) {
			d.parent = d.tree.device(up)
			break
		}
	}
	return d.parent
}

// uevent returns the kernel's properties.
func (d *sysDevice) uevent() map[string]string {
	text := d.text("uevent")
	if d.kernel == nil {
		d.kernel = map[string]string{}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "="); ok {
				d.kernel[name] = value
			}
		}
	}
	return d.kernel
}

// displayName returns what the device, or else the USB device that it belongs to, calls itself.
func (d *sysDevice) displayName() string {
	for _, name := range []string{"name", "model", "device/model"} { // of cameras and inputs, NVMe drives, other drives
		if text := strings.TrimSpace(d.text(name)); text != "" {
			return text
		}
	}
	for up := d; up != nil; up = up.above() {
		if up.uevent()["DEVTYPE"] == "usb_device" {
			return strings.TrimSpace(strings.TrimSpace(up.text("manufacturer")) + " " + strings.TrimSpace(up.text("product")))
		}
	}
	return ""
}

// node returns the path of the device file, or "".
func (d *sysDevice) node() string {
	name := d.uevent()["DEVNAME"]
	if name == "" || d.uevent()["MAJOR"] == "" || !isBelow(name) || !utf8.ValidString(name) {
		return ""
	}
	return "/dev/" + name
}

// data returns the device's entry in udev's database, which may be empty.
func (d *sysDevice) data() *databaseRecord {
	d.tree.usesDatabase = true
	name := d.recordName() // each time: it is wrong if the kernel's properties could not be read
	if d.database == nil {
		text, err := d.tree.files.read(filepath.Join(d.tree.run, "data", name), maxDatabaseBytes)
		d.databaseErr = d.tree.unread(err)
		if d.databaseErr == nil && err != nil && d.tree.udevd && !strings.HasPrefix(name, "+") {
			d.databaseErr = errNoEntry
		}
		parsed := parseRecord(text)
		d.database = &parsed
	}
	d.tree.note(d.databaseErr)
	return d.database
}

// recordName returns the name of the device's entry in udev's database.
func (d *sysDevice) recordName() string {
	properties := d.uevent()
	switch {
	case properties["MAJOR"] != "" && properties["MAJOR"] != "0" && d.Subsystem() == "block":
		return "b" + properties["MAJOR"] + ":" + properties["MINOR"]
	case properties["MAJOR"] != "" && properties["MAJOR"] != "0":
		return "c" + properties["MAJOR"] + ":" + properties["MINOR"]
	case properties["IFINDEX"] != "":
		return "n" + properties["IFINDEX"]
	}
	return "+" + d.Subsystem() + ":" + path.Base(d.path)
}

// withNode returns the device itself or its nearest ancestor with a device file, or the
// device itself if there is none.
func (d *sysDevice) withNode() *sysDevice {
	for device := d; device != nil; device = device.above() {
		if device.node() != "" {
			return device
		}
	}
	return d
}
