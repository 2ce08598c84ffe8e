package details

import (
	"slices"
	"strings"
)

// Field is what a condition compares.
type Field string

// The fields of rules. The plural ones also look at the ancestors of a device.
const (
	DevPath    Field = "DEVPATH"
	Kernel     Field = "KERNEL"
	Kernels    Field = "KERNELS"
	Subsystem  Field = "SUBSYSTEM"
	Subsystems Field = "SUBSYSTEMS"
	Driver     Field = "DRIVER"
	Drivers    Field = "DRIVERS"
	Attr       Field = "ATTR"
	Attrs      Field = "ATTRS"
	Env        Field = "ENV"
	Tag        Field = "TAG"
	Tags       Field = "TAGS"
)

// fields lists all fields, with whether they have a key in braces.
var fields = map[Field]bool{
	DevPath: false, Kernel: false, Kernels: false, Subsystem: false, Subsystems: false, Driver: false, Drivers: false,
	Attr: true, Attrs: true, Env: true, Tag: false, Tags: false,
}

// regex reports whether Akri reads the value of a condition as a regular expression.
func (f Field) regex(not bool) bool {
	switch f {
	case Attr, Subsystem:
		return false
	case DevPath, Kernel, Env, Tag:
		return not
	}
	return true
}

// ancestors reports whether the field also looks at the ancestors of a device.
func (f Field) ancestors() bool {
	return f == Kernels || f == Subsystems || f == Drivers || f == Attrs || f == Tags
}

// emptyIfMissing reports whether a device without a value has the empty value.
func (f Field) emptyIfMissing() bool { return f == Env || f == Driver || f == Subsystem }

// Device is what rules are compared with.
type Device interface {
	// DevPath is the path in sysfs, such as "/devices/virtual/block/loop0".
	DevPath() string
	// Kernel is the kernel's name, the last element of the path.
	Kernel() string
	// Subsystem and Driver are empty if the device has none.
	Subsystem() string
	Driver() string
	// Attr returns an attribute, that is, a file in sysfs.
	Attr(name string) (value string, found bool)
	// Env returns a property of the kernel or of udev's database.
	Env(name string) (value string, found bool)
	// Tags returns the tags in udev's database.
	Tags() []string
	// Parent returns the next device above, or nil.
	Parent() Device
	// Unread reports whether something that was requested since the last call, of this
	// device or an ancestor, could not be read. What was returned instead means nothing.
	Unread() bool
}

// Verdict is whether a rule matches. Verdicts are ordered: of conditions that must all
// hold, the smallest counts, and of alternatives the largest.
type Verdict int

// The verdicts. Unknown depends on something that could not be read.
const (
	No Verdict = iota
	Unknown
	Yes
)

// String returns a verdict as text.
func (v Verdict) String() string { return [...]string{"no", "unknown", "yes"}[v] }

// Condition is a comparison in a rule, such as ATTRS{idVendor}=="10c4".
type Condition struct {
	Reference
	// Not means that the operator is !=.
	Not     bool
	Pattern Pattern
}

// Rule is a list of conditions. A device matches if all of them hold.
type Rule []Condition

// size estimates the instructions of all regular expressions.
func (r Rule) size() int {
	total := 0
	for _, c := range r {
		total += c.Pattern.size
	}
	return total
}

// Matches reports whether all conditions hold for a device. Cheap ones are looked at
// first.
func (r Rule) Matches(device Device) Verdict {
	verdict := Yes
	for _, reads := range []bool{false, true} {
		for _, c := range r {
			if c.reads() == reads {
				verdict = min(verdict, c.Matches(device))
			}
			if verdict == No {
				return No
			}
		}
	}
	return verdict
}

// Admits reports whether the rule can match devices with this value of a field.
func (r Rule) Admits(field Field, value string) bool {
	return !slices.ContainsFunc(r, func(c Condition) bool { return c.Field == field && c.Pattern.Matches(value) == c.Not })
}

// reads reports whether the condition needs files of the device or of its ancestors.
func (c Condition) reads() bool {
	return c.Field != Kernel && c.Field != DevPath && c.Field != Subsystem
}

// Matches reports whether the condition holds. A condition with != holds exactly if the
// one with == does not.
func (c Condition) Matches(device Device) Verdict {
	verdict := No
	for ; device != nil; device = device.Parent() {
		verdict = max(verdict, c.judge(device))
		if verdict == Yes || !c.Field.ancestors() {
			break
		}
	}
	if c.Not {
		return Yes - verdict
	}
	return verdict
}

// judge reports whether == holds for the device itself.
func (c Condition) judge(device Device) Verdict {
	device.Unread() // of what was requested before
	equal := c.equal(device)
	switch {
	case device.Unread():
		return Unknown
	case equal:
		return Yes
	}
	return No
}

// equal reports whether == holds for what could be read of the device itself.
func (c Condition) equal(device Device) bool {
	if c.Field == Tag || c.Field == Tags {
		return slices.ContainsFunc(device.Tags(), c.Pattern.Matches)
	}
	value, found := c.value(device)
	if !found {
		return c.Field.emptyIfMissing() && c.Pattern.matchesEmpty()
	}
	if c.Field == Attr || c.Field == Attrs {
		// Some devices pad texts with spaces. As in udev, a pattern need not.
		return c.Pattern.Matches(value) || c.Pattern.Matches(strings.TrimRight(value, " \t"))
	}
	return c.Pattern.Matches(value)
}
