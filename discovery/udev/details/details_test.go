package details

import (
	"strings"
	"testing"

	"akri.sh/akri/discovery/handlertest"
)

func TestParse(t *testing.T) {
	handlertest.Validate(t, invalid, map[string]handlertest.Details{
		"defaults": {`udevRules: ['SUBSYSTEM=="tty"']`, ""},
		"no rules": {"udevRules: []", ""},
		"everything": {`
udevRules: ['SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4"', 'TAG!="x",ENV{A}=="b|c"']
groupRecursive: true
permissions: wm
properties: {SERIAL: "ENV{ID_SERIAL_SHORT}", MODEL: "ATTRS{product}", P: DEVPATH, Q: "ATTR{queue/rotational}"}
id: ENV{ID_SERIAL} ENV{ID_USB_INTERFACE_NUM}
symlinks: true
containerPath: /dev/serial/by-id/usb-Silicon_Labs_CP2102N:1.0@+-if00`, ""},
		"rules are missing": {"groupRecursive: true", "udevRules: missing … SUBSYSTEM=="},
		"a misspelled key":  {"udevrules: []", "udevrules: unknown key … did you mean udevRules?"},
		"the second rule":   {`udevRules: ['KERNEL=="a"', 'KERNEL="a"']`, "udevRules[1]: column 7: = assigns … =="},
		"permissions in disorder": {"udevRules: []\npermissions: wr",
			`permissions: want one of r, w, m, rw, rm, rwm, wm, not "wr"`},
		"empty permissions":        {"udevRules: []\npermissions: ''", "permissions: want one of"},
		"a property's name":        {"udevRules: []\nproperties: {'A B': DEVPATH}", "properties.A B: not a name"},
		"a property of ours":       {"udevRules: []\nproperties: {UDEV_DEVPATH: DEVPATH}", "reserved for the handler … DEVPATH"},
		"a property of Akri":       {"udevRules: []\nproperties: {AKRI_DISPLAY_NAME: DEVPATH}", "names that begin with AKRI_ are … DISPLAY_NAME"},
		"an unknown reference":     {"udevRules: []\nproperties: {A: SERIAL}", `properties.A: "SERIAL" is not … ATTRS{name}`},
		"a reference to all tags":  {"udevRules: []\nproperties: {A: TAGS}", `"TAGS" is not a value`},
		"a reference without name": {"udevRules: []\nproperties: {A: ENV}", "ENV has no name in braces"},
		"an empty name":            {"udevRules: []\nproperties: {A: 'ENV{}'}", "the name in braces is empty"},
		"an open brace":            {"udevRules: []\nproperties: {A: 'ENV{B'}", "the brace is not closed"},
		"text after the brace":     {"udevRules: []\nproperties: {A: 'ENV{B}}'}", `properties.A: column 7: want the end of ENV{B}, not "}"`},
		"braces after KERNEL":      {"udevRules: []\nproperties: {A: 'KERNEL{B}'}", "KERNEL takes no braces"},
		"upwards":                  {"udevRules: []\nproperties: {A: 'ATTR{../../x}'}", "leads out of the device"},
		"an empty id":              {"udevRules: []\nid: ' '", "id: empty … ENV{ID_SERIAL}"},
		"a bad id":                 {"udevRules: []\nid: ENV{A} serial", `id: "serial" is not`},

		"a path like a default device's": {"udevRules: []\ncontainerPath: /dev/tty/stick", "every container has"},
		"a path that only begins so":     {"udevRules: []\ncontainerPath: /dev/ttyUSB0", ""},
		"a default device": {"udevRules: []\ncontainerPath: /dev/null",
			"containerPath: every container has a /dev/null of its own … another"},
		"no path": {"udevRules: []\ncontainerPath: ''", ""},
		"the directory": {"udevRules: []\ncontainerPath: /dev",
			`containerPath: "/dev" is not a path below /dev … such as /dev/zigbee`},
		"a slash at the end":   {"udevRules: []\ncontainerPath: /dev/zigbee/", "containerPath: "},
		"elsewhere":            {"udevRules: []\ncontainerPath: /etc/passwd", "containerPath: "},
		"out of the directory": {"udevRules: []\ncontainerPath: /dev/../etc/passwd", "containerPath: "},
		"a relative path":      {"udevRules: []\ncontainerPath: zigbee", "containerPath: "},
		"a space in the path":  {"udevRules: []\ncontainerPath: /dev/my stick", "containerPath: "},
	})
}

func invalid(discoveryDetails string) error {
	_, err := Parse(discoveryDetails)
	return err
}

func TestBounds(t *testing.T) {
	rule := `'KERNEL=="a"'`
	handlertest.CheckError(t, invalid("udevRules: ["+strings.Repeat(rule+",", maxRules+1)+"]"), "201 rules, more than 200")
	handlertest.CheckError(t, invalid(`udevRules: ['KERNEL=="`+strings.Repeat("a", maxRuleBytes)+`"']`), "udevRules[0]: 41 … more than 4096")
	handlertest.CheckError(t, invalid("udevRules: ['"+strings.Repeat(`KERNEL=="a",`, maxConditions+1)+"']"), "more than 50 conditions")
	handlertest.CheckError(t, invalid("udevRules: []\ncontainerPath: /dev/"+strings.Repeat("a", maxPathBytes-len("/dev/"))), "")
	handlertest.CheckError(t, invalid("udevRules: []\ncontainerPath: /dev/"+strings.Repeat("a", maxPathBytes)), "containerPath: ")
	properties := ""
	for i := range maxProperties + 1 {
		properties += "A" + strings.Repeat("B", i) + ": DEVPATH, "
	}
	handlertest.CheckError(t, invalid("udevRules: []\nproperties: {"+properties+"}"), "101 entries, more than 100")
}

// TestInstructionsAreBounded has expressions of about 4000 instructions each, in one rule and
// in several.
func TestInstructionsAreBounded(t *testing.T) {
	const condition = `ATTRS{a}=="x{999}",`
	for count, want := range map[int]string{
		4: "", 5: "globs and regular expressions have more than 16384 instructions … use several Configurations",
	} {
		handlertest.CheckError(t, invalid("udevRules: ['"+strings.Repeat(condition, count)+"']"), want)
		handlertest.CheckError(t, invalid("udevRules: ["+strings.Repeat("'"+condition+"',", count)+"]"), want)
	}
	// What an expression takes besides its instructions counts, too.
	rule := "'" + strings.Repeat(`KERNEL=="?",`, maxConditions) + "',"
	handlertest.CheckError(t, invalid("udevRules: ["+strings.Repeat(rule, 20)+"]"), "more than 16384")
}
