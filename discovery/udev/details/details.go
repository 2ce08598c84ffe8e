package details

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"akri.sh/akri/discovery/details"
)

// Bounds on discoveryDetails.
const (
	maxRules      = 200
	maxRuleBytes  = 4096
	maxConditions = 50
	maxProperties = 100
	maxPathBytes  = 255
	// maxInstructions bounds the globs and regular expressions of all rules, in instructions
	// of the compiled ones, of about 50 bytes each.
	maxInstructions = 16384
)

// Details are the discoveryDetails of udev.
type Details struct {
	// Rules select devices: those that match at least one.
	Rules []Rule
	// GroupRecursive makes one device of a device and those below it.
	GroupRecursive bool
	// Permissions are those of the device files in containers.
	Permissions string
	// Properties are additional properties, by name.
	Properties map[string]Reference
	// ID is what the device's id consists of; empty for its path in sysfs.
	ID []Reference
	// Symlinks also gives containers the device files at udev's links.
	Symlinks bool
	// ContainerPath is a path at which containers also get the device file; empty for none.
	ContainerPath string
}

// permissions are the values that Akri accepts.
var permissions = []string{"r", "w", "m", "rw", "rm", "rwm", "wm"}

// propertyName is the form of names that Kubernetes accepts for environment variables.
var propertyName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

var (
	// containerPath is the form of ContainerPath: without names such as "..".
	containerPath = regexp.MustCompile(`^/dev(/[\w:@+-][\w.:@+-]*)+$`)
	// runtimePath matches what container runtimes make in /dev. A device file at such a path
	// would replace it (createDevices in runc's specconv).
	runtimePath = regexp.MustCompile(`^/dev/(null|zero|full|random|urandom|tty|console|ptmx|pts|shm|mqueue|fd|stdin|stdout|stderr)(/|$)`)
)

// Names of properties that the handler sets start with reservedPrefix; that of the display name with akriPrefix.
const (
	reservedPrefix = "UDEV_"
	akriPrefix     = "AKRI_"
)

// Parse returns the Details in discoveryDetails. An error is a *details.Fault.
func Parse(discoveryDetails string) (*Details, error) {
	fields := struct {
		UdevRules      *[]string         `json:"udevRules"`
		GroupRecursive bool              `json:"groupRecursive"`
		Permissions    string            `json:"permissions"`
		Properties     map[string]string `json:"properties"`
		ID             string            `json:"id"`
		Symlinks       bool              `json:"symlinks"`
		ContainerPath  string            `json:"containerPath"`
	}{Permissions: "rwm", ID: string(DevPath)}
	parsed := &Details{}
	err := details.Decode(discoveryDetails, &fields,
		func() error { return parsed.setRules(fields.UdevRules) },
		func() error { return parsed.setProperties(fields.Properties) },
		func() error { return parsed.setID(fields.ID) },
		func() error {
			if !slices.Contains(permissions, fields.Permissions) {
				return details.Faultf("permissions", "want one of %s, not %q", strings.Join(permissions, ", "), fields.Permissions)
			}
			return nil
		},
		func() error { return checkContainerPath(fields.ContainerPath) })
	parsed.GroupRecursive, parsed.Permissions, parsed.Symlinks = fields.GroupRecursive, fields.Permissions, fields.Symlinks
	parsed.ContainerPath = fields.ContainerPath
	return parsed, err
}

func (d *Details) setRules(texts *[]string) error {
	switch {
	case texts == nil:
		return details.Faultf("udevRules", "missing").Hintf(`write a list of rules, such as 'SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4"'`)
	case len(*texts) > maxRules:
		return details.Faultf("udevRules", "%d rules, more than %d", len(*texts), maxRules).
			Hintf(`join values by "|", or use several Configurations`)
	}
	var mistakes []error
	left := maxInstructions
	for i, text := range *texts {
		rule, fault := parseRule(text, left)
		if fault == nil {
			left -= rule.size()
			d.Rules = append(d.Rules, rule)
			continue
		}
		tooLarge := strings.HasSuffix(fault.Cause, errTooLarge.Error())
		if fault.Path = fmt.Sprintf("udevRules[%d]", i); !tooLarge || len(mistakes) == 0 {
			mistakes = append(mistakes, fault)
		}
		if tooLarge {
			break
		}
		left /= 2 // all rules with mistakes together take no more than those without
	}
	return errors.Join(mistakes...)
}

func (d *Details) setProperties(texts map[string]string) error {
	if len(texts) > maxProperties {
		return details.Faultf("properties", "%d entries, more than %d", len(texts), maxProperties)
	}
	d.Properties = make(map[string]Reference, len(texts))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		path := "properties." + name
		switch {
		case !propertyName.MatchString(name):
			return details.Faultf(path, "not a name for an environment variable").
				Hintf("use letters, digits and underscores, such as SERIAL")
		case strings.HasPrefix(name, reservedPrefix), strings.HasPrefix(name, akriPrefix):
			const prefix = len(reservedPrefix) // that of both
			return details.Faultf(path, "names that begin with %s are reserved for the handler", name[:prefix]).
				Hintf("use another name, such as %s", name[prefix:])
		}
		reference, fault := parseReference(strings.TrimSpace(texts[name]))
		if fault != nil {
			fault.Path = path
			return fault
		}
		d.Properties[name] = reference
	}
	return nil
}

func (d *Details) setID(text string) error {
	for part := range referencesOf(text) {
		reference, fault := parseReference(part)
		if fault != nil {
			fault.Path = "id"
			return fault
		}
		d.ID = append(d.ID, reference)
	}
	switch {
	case len(d.ID) == 0:
		return details.Faultf("id", "empty").Hintf("write DEVPATH, or what survives another port, such as ENV{ID_SERIAL}")
	case len(d.ID) == 1 && d.ID[0].Field == DevPath:
		d.ID = nil
	}
	return nil
}

func checkContainerPath(file string) error {
	switch {
	case file == "":
	case !containerPath.MatchString(file) || len(file) > maxPathBytes:
		return details.Faultf("containerPath", "%q is not a path below /dev of at most %d bytes", file, maxPathBytes).
			Hintf("write names of letters, digits and _.:@+-, such as /dev/zigbee")
	case runtimePath.MatchString(file):
		return details.Faultf("containerPath", "every container has a %s of its own", file).Hintf("use another path, such as /dev/zigbee")
	}
	return nil
}
