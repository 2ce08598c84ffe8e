package conformance

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/discovery/protocol"
	"akri.sh/akri/internal/text"
)

// Bounds of agents; they ignore devices and properties beyond them.
const (
	maxDevices        = 1000
	maxIDBytes        = 4096
	maxProperties     = 500
	maxNameBytes      = 253
	maxValueBytes     = 8192
	maxPropertiesSize = 16384
	maxShownBytes     = 64
)

// variable matches names of environment variables that every shell and Kubernetes
// accept.
var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

var permissions = []string{"r", "w", "m", "rw", "rm", "wm", "rwm"}

// The rules about devices.
const (
	deviceIDs        = "device ids"
	deviceProperties = "device properties"
	deviceFiles      = "mounts and device files"
)

// inspect checks a list, and keeps what is wrong with it.
func (c *checker) inspect(list []*protocol.Device) {
	found := map[string]error{deviceIDs: checkIDs(list), deviceProperties: checkProperties(list), deviceFiles: checkFiles(list)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.devices += len(list)
	for rule, err := range found {
		c.faults[rule] = cmp.Or(c.faults[rule], err)
	}
}

// found returns what is wrong with the lists of all calls.
func (c *checker) found(rule string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.devices == 0 {
		return skipped("no device was found")
	}
	return c.faults[rule]
}

// checkIDs returns an error if devices have no id, or share one.
func checkIDs(list []*protocol.Device) error {
	if len(list) > maxDevices {
		return fmt.Errorf("%d devices, but agents accept %d: let authors restrict them in discoveryDetails", len(list), maxDevices)
	}
	seen := map[string]bool{}
	for i, device := range list {
		switch id := device.GetId(); {
		case id == "":
			return fmt.Errorf("device %d of the list has no id", i)
		case len(id) > maxIDBytes:
			return fmt.Errorf("device %d of the list has an id of %d bytes, the limit is %d", i, len(id), maxIDBytes)
		case seen[id]:
			return fmt.Errorf("several devices of a list have the id %q", shown(id))
		}
		seen[device.GetId()] = true
	}
	return nil
}

// checkProperties returns an error if a property cannot be an environment variable.
func checkProperties(list []*protocol.Device) error {
	for _, device := range list {
		size := 0
		if count := len(device.GetProperties()); count > maxProperties {
			return fmt.Errorf("device %q has %d properties, the limit is %d", shown(device.GetId()), count, maxProperties)
		}
		for name, value := range device.GetProperties() {
			size += len(name) + len(value)
			switch {
			case !variable.MatchString(name):
				return fmt.Errorf("device %q: the property %q is not a valid name of an environment variable", shown(device.GetId()), shown(name))
			case len(name) > maxNameBytes:
				return fmt.Errorf("device %q: the name of the property %q has more than %d bytes", shown(device.GetId()), shown(name), maxNameBytes)
			case len(value) > maxValueBytes:
				return fmt.Errorf("device %q: the value of %s has more than %d bytes", shown(device.GetId()), name, maxValueBytes)
			case strings.ContainsRune(value, 0):
				return fmt.Errorf("device %q: the value of %s contains a NUL byte", shown(device.GetId()), name)
			}
		}
		if size > maxPropertiesSize {
			return fmt.Errorf("device %q: its properties have %d bytes, the limit is %d", shown(device.GetId()), size, maxPropertiesSize)
		}
	}
	return nil
}

// checkFiles returns an error if mounts or device files cannot be given to containers.
func checkFiles(list []*protocol.Device) error {
	for _, device := range list {
		var paths []string
		for _, mount := range device.GetMounts() {
			paths = append(paths, mount.GetHostPath(), mount.GetContainerPath())
		}
		for _, spec := range device.GetDeviceSpecs() {
			paths = append(paths, spec.GetHostPath(), spec.GetContainerPath())
			if !slices.Contains(permissions, spec.GetPermissions()) {
				return fmt.Errorf("device %q: the permissions of %s are %q, want r, w or m, or several in this order",
					shown(device.GetId()), shown(spec.GetHostPath()), shown(spec.GetPermissions()))
			}
		}
		for _, each := range paths {
			if !path.IsAbs(each) || path.Clean(each) != each {
				return fmt.Errorf("device %q: the path %q of a mount or device file is not a clean absolute path", shown(device.GetId()), shown(each))
			}
		}
	}
	return nil
}

// differ returns an error if one of two lists has a device that the other one lacks.
func differ(older, newer []*protocol.Device) error {
	inBoth := map[string]bool{} // by the ids of the newer list
	for _, device := range newer {
		inBoth[device.GetId()] = false
	}
	for _, device := range older {
		if _, found := inBoth[device.GetId()]; !found {
			return fmt.Errorf("the device %q is missing", shown(device.GetId()))
		}
		inBoth[device.GetId()] = true
	}
	for id, both := range inBoth {
		if !both {
			return fmt.Errorf("the device %q is new", shown(id))
		}
	}
	return nil
}

func shown(s string) string { return text.Truncate(s, maxShownBytes) }
