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

func parseReference(text string) (Reference, *details.Fault) {
	if !slices.Contains(referenceFields, Field(word.FindString(text))) {
		return Reference{}, details.Faultf("", "%q is not a value of a device", text).
			Hintf("write ENV{NAME}, ATTR{name}, ATTRS{name}, KERNEL, SUBSYSTEM, DRIVER or DEVPATH")
	}
	p := &ruleParser{whole: text, rest: text}
	field, key, fault := p.field()
	if fault == nil && p.rest != "" {
		fault = p.fault("want the end of %s, not %s", text[:len(text)-len(p.rest)], p.next())
	}
	return Reference{Field: field, Key: key}, fault
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
