package deviceplugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/internal/text"
)

const (
	// maxEnvironmentBytes bounds the names and values of a container's properties.
	// By default, Linux accepts 2 MiB for the whole environment and the arguments (a
	// quarter of the stack).
	maxEnvironmentBytes = 1 << 20
	// maxOmittedBytes bounds the list of names in a message.
	maxOmittedBytes = 512
)

// omission is something of a device that a container does not get.
type omission struct {
	device device.Device
	reason string // of an Event
	what   string
}

// environment returns the environment variables of a container with these devices,
// which are sorted by Instance. Each property is in NAME_HASH, where HASH is that of
// its Instance. Those of the first device are in NAME, too; NAME is never from another
// device, so that a container does not get a mixture. NAME_HASH of one property takes
// precedence over NAME of another.
func environment(devices []device.Device) (map[string]string, []omission) {
	variables, left := map[string]string{}, maxEnvironmentBytes
	omitted := make([][]string, len(devices))
	add := func(i int, suffix string) {
		for _, name := range slices.Sorted(maps.Keys(devices[i].Properties)) {
			value := devices[i].Properties[name]
			name += suffix
			if _, found := variables[name]; found {
				continue
			}
			invalid := name == suffix || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00")
			if invalid || len(name)+len(value) > left {
				omitted[i] = append(omitted[i], name)
				continue
			}
			left -= len(name) + len(value)
			variables[name] = value
		}
	}
	for i, d := range devices {
		add(i, "_"+hash(d.Instance.Name))
	}
	if len(devices) > 0 {
		add(0, "")
	}
	var omissions []omission
	for i, names := range omitted {
		if len(names) > 0 {
			omissions = append(omissions, omission{devices[i], reasonOmitted, fmt.Sprintf(
				"a container gets the device without %d environment variables, which are invalid or exceed the limit of %d bytes for all: %s",
				len(names), maxEnvironmentBytes, text.Truncate(strings.Join(names, ", "), maxOmittedBytes))})
		}
	}
	return variables, omissions
}

// hash returns the part of an Instance's name after its Configuration's name, in
// upper case.
func hash(instance string) string {
	return strings.ToUpper(instance[strings.LastIndexByte(instance, '-')+1:])
}
