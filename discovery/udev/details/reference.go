package details

import (
	"iter"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// Reference names a value of a device, such as ENV{ID_SERIAL_SHORT} or ATTRS{serial}.
type Reference struct {
	Field Field
	// Key is the text in braces.
	Key string
}

// referenceFields are the fields with one value for a device.
var referenceFields = []Field{DevPath, Kernel, Subsystem, Driver, Attr, Attrs, Env}

// Value returns the value of a device. ATTRS returns that of the device itself or of the
// nearest ancestor that has the attribute. Spaces around a value are removed;
// an empty value counts as missing.
func (r Reference) Value(device Device) (value string, found bool) {
	for ; device != nil; device = device.Parent() {
		value, found = r.value(device)
		if value = strings.TrimSpace(value); found && value != "" {
			return value, true
		}
		if !r.Field.ancestors() {
			break
		}
	}
	return "", false
}

// value returns the value of the device itself.
func (r Reference) value(device Device) (value string, found bool) {
	switch r.Field {
	case DevPath:
		return device.DevPath(), true
	case Kernel, Kernels:
		return device.Kernel(), true
	case Subsystem, Subsystems:
		name := device.Subsystem()
		return name, name != ""
	case Driver, Drivers:
		name := device.Driver()
		return name, name != ""
	case Attr, Attrs:
		return device.Attr(r.Key)
	}
	return device.Env(r.Key)
}

// ofUdev reports whether the value is from udev's database.
func (r Reference) ofUdev() bool {
	return r.Field == Tag || r.Field == Tags || r.Field == Env && !slices.Contains(kernelProperties, r.Key)
}

// kernelProperties are properties that udev never changes.
var kernelProperties = []string{"DEVPATH", "DEVNAME", "DEVTYPE", "DRIVER", "IFINDEX", "MAJOR", "MINOR", "MODALIAS", "SUBSYSTEM"}

func parseReference(text string) (Reference, *details.Fault) {
	const remedy = "write ENV{NAME}, ATTR{name}, ATTRS{name}, KERNEL, SUBSYSTEM, DRIVER or DEVPATH"
	name, key, braced := strings.Cut(text, "{")
	key, closed := strings.CutSuffix(key, "}")
	field := Field(name)
	switch hasKey := fields[field]; {
	case !slices.Contains(referenceFields, field):
		return Reference{}, details.Faultf("", "%q is not a value of a device", text).Hintf("%s", remedy)
	case hasKey && (!braced || !closed || strings.Contains(key, "}")):
		return Reference{}, details.Faultf("", "%q has no name in braces", text).Hintf("write %s{name}", field)
	case !hasKey && braced:
		return Reference{}, details.Faultf("", "%s takes no braces", field).Hintf("write %s", field)
	case !hasKey:
		return Reference{Field: field}, nil
	}
	if fault := checkKey(field, key); fault != nil {
		return Reference{}, fault
	}
	return Reference{Field: field, Key: key}, nil
}

// referencesOf returns the parts of a text that spaces separate, except within braces.
func referencesOf(text string) iter.Seq[string] {
	depth := 0
	return strings.FieldsFuncSeq(text, func(c rune) bool {
		switch c {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth <= 0 && (c == ' ' || c == '\t' || c == '\n')
	})
}
