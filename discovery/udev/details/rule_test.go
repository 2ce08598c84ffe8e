package details

import (
	"maps"
	"slices"
	"testing"
)

// sample is a device for tests.
type sample struct {
	devPath, kernel, subsystem, driver string
	attributes, properties             map[string]string
	tags                               []string
	parent                             *sample
	// unread are attributes and properties that cannot be read.
	unread []string
	missed bool
}

func (s *sample) DevPath() string   { return s.devPath }
func (s *sample) Kernel() string    { return s.kernel }
func (s *sample) Subsystem() string { return s.subsystem }
func (s *sample) Driver() string    { return s.driver }
func (s *sample) Tags() []string    { s.read("tags"); return s.tags }
func (s *sample) Attr(name string) (string, bool) {
	s.read(name)
	v, ok := s.attributes[name]
	return v, ok
}
func (s *sample) Env(name string) (string, bool) {
	s.read(name)
	v, ok := s.properties[name]
	return v, ok
}
func (s *sample) read(name string) { s.missed = s.missed || slices.Contains(s.unread, name) }
func (s *sample) Unread() bool     { missed := s.missed; s.missed = false; return missed }
func (s *sample) Parent() Device {
	if s.parent == nil {
		return nil
	}
	return s.parent
}

// camera returns a video device of a camera at a USB port.
func camera() *sample {
	usb := &sample{
		devPath: "/devices/pci0000:00/0000:00:14.0/usb1/1-2", kernel: "1-2", subsystem: "usb", driver: "usb",
		attributes: map[string]string{"idVendor": "046d", "product": "USB Camera", "serial": "", "manufacturer": "Logi  "},
		tags:       []string{"seat", "uaccess"},
	}
	function := &sample{
		devPath: usb.devPath + "/1-2:1.0", kernel: "1-2:1.0", subsystem: "usb", driver: "uvcvideo", parent: usb,
		attributes: map[string]string{"bInterfaceNumber": "00", "interface": "UVC Camera"},
	}
	return &sample{
		devPath: function.devPath + "/video4linux/video0", kernel: "video0", subsystem: "video4linux", parent: function,
		attributes: map[string]string{"name": "USB Camera: USB Camera", "index": "0"},
		properties: map[string]string{"ID_MODEL": "C920", "ID_V4L_CAPABILITIES": ":capture:", "EMPTY": ""},
		tags:       []string{"systemd"},
	}
}

func TestMatches(t *testing.T) {
	for rule, want := range map[string]bool{
		// Values are globs with alternatives.
		`KERNEL=="video[0-9]*"`:      true,
		`KERNEL=="video"`:            false,
		`KERNEL=="vid|video0"`:       true,
		`KERNEL=="radio*|video*"`:    true,
		`KERNEL!="radio*|video*"`:    false,
		`DEVPATH=="*/video4linux/*"`: true,
		`DEVPATH=="/devices/pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0/video4linux/video0"`: true,
		`SUBSYSTEM=="video4linux"`: true,
		`SUBSYSTEM=="video.*"`:     false, // Akri reads it as a glob
		`KERNEL=="video.*"`:        false,
		`ENV{ID_MODEL}=="C9?0"`:    true,
		`ENV{ID_MODEL}=="C9.0"`:    false,
		`ATTR{name}=="USB*"`:       true,
		`TAG=="sys*"`:              true,
		`TAG=="seat"`:              false,
		`TAG=="sys.*"`:             false, // Akri reads it as a glob
		// Where Akri reads regular expressions, these work too, for the whole value.
		`KERNEL!="video.*"`:                        false,
		`KERNEL!="ideo.*"`:                         true,
		`ENV{ID_MODEL}!="C9.0"`:                    false,
		`ENV{ID_MODEL}!="C9"`:                      true,
		`TAG!="sys.*"`:                             false,
		`DEVPATH!="/devices/.*video.*"`:            false,
		`SUBSYSTEM!="video.*"`:                     true,
		`ATTR{name}!="USB.*"`:                      true,
		`ATTRS{product}=="USB.*"`:                  true,
		`ATTRS{product}=="USB*"`:                   true, // and globs, which Akri would not match
		`ATTRS{product}=="USB"`:                    false,
		`ATTRS{product}=="(USB|PS/2) [A-Z][a-z]+"`: true,
		`ATTRS{product}=="*(TM)|USB ?am*"`:         true, // a glob with characters of regular expressions
		`ATTRS{product}=="*Camera"`:                true, // no regular expression at all
		`DRIVERS=="uvc.*"`:                         true,
		`DRIVERS=="uvc"`:                           false,
		`KERNELS=="1-[0-9]"`:                       true,
		`SUBSYSTEMS=="us."`:                        true,
		// Ancestors: any, and each condition may hold for another one.
		`ATTRS{idVendor}=="046d"`:                                true,
		`ATTR{idVendor}=="046d"`:                                 false,
		`ATTRS{idVendor}=="046d", ATTRS{bInterfaceNumber}=="00"`: true,
		`ATTRS{idVendor}=="046d", DRIVERS=="uvcvideo"`:           true,
		`ATTRS{idVendor}=="046d", DRIVERS=="snd"`:                false,
		`KERNELS=="video0"`:                                      true, // the device itself counts
		`TAGS=="uaccess"`:                                        true,
		`TAGS=="uaccess", TAGS=="systemd"`:                       true,
		`ATTRS{idVendor}!="046d"`:                                false,
		`ATTRS{idVendor}!="0000"`:                                true,
		`SUBSYSTEMS!="usb"`:                                      false,
		`DRIVER=="uvcvideo"`:                                     false,
		`ENV{ID_MODEL}=="C920", ENV{ID_MODEL}=="C921"`:           false, // and, also with one property
		// What is missing.
		`ATTR{missing}=="*"`:  false,
		`ATTR{missing}!="*"`:  true,
		`ATTRS{missing}!="x"`: true,
		`ENV{MISSING}=="*"`:   false,
		`ENV{MISSING}==""`:    true,
		`ENV{MISSING}=="a|"`:  true,
		`ENV{MISSING}!=""`:    false,
		`ENV{MISSING}!="x"`:   true,
		`ENV{EMPTY}==""`:      true,
		`ENV{ID_MODEL}!=""`:   true,
		`ENV{ID_MODEL}=="?*"`: true,
		`DRIVER==""`:          true,
		`DRIVER!="x"`:         true,
		`ATTR{missing}==""`:   false,
		// Spaces at the end of an attribute do not matter.
		`ATTRS{manufacturer}=="Logi"`:   true,
		`ATTRS{manufacturer}=="Logi  "`: true,
	} {
		parsed, fault := parseRule(rule, maxInstructions)
		if fault != nil {
			t.Errorf("%s: %v", rule, fault)
		} else if got := parsed.Matches(camera()); got != map[bool]Verdict{true: Yes, false: No}[want] {
			t.Errorf("%s: %v, want %t", rule, got, want)
		}
	}
}

// TestUnread has values that cannot be read at the moment. Only what does not depend on
// them is certain.
func TestUnread(t *testing.T) {
	for rule, want := range map[string]Verdict{
		`ATTR{serial}=="1"`:                            Unknown,
		`ATTR{serial}!="1"`:                            Unknown,
		`ATTRS{serial}=="1"`:                           Unknown, // an ancestor has it, with another value
		`ATTRS{idVendor}=="046d"`:                      Yes,     // of the ancestor; that of the device is unread
		`ATTRS{idVendor}!="046d"`:                      No,
		`ATTRS{idVendor}!="0000"`:                      Unknown,
		`ENV{STATE}==""`:                               Unknown,
		`ENV{STATE}!=""`:                               Unknown,
		`TAGS=="uaccess"`:                              Yes, // of the ancestor
		`TAG=="systemd"`:                               Unknown,
		`KERNEL=="x", ATTR{serial}=="1"`:               No,
		`ATTR{serial}=="1", ATTR{name}=="x"`:           No,
		`ATTR{serial}!="1", ATTR{name}=="USB*"`:        Unknown,
		`ATTR{name}=="USB*", ENV{ID_MODEL}=="C920"`:    Yes, // nothing of it is unread
		`ATTR{serial}!="1", ATTR{name}=="USB*|Camera"`: Unknown,
	} {
		device := camera()
		device.unread = []string{"serial", "idVendor", "STATE", "tags"}
		parsed, fault := parseRule(rule, maxInstructions)
		if fault != nil {
			t.Errorf("%s: %v", rule, fault)
		} else if got := parsed.Matches(device); got != want {
			t.Errorf("%s: %v, want %v", rule, got, want)
		}
	}
}

func TestAdmits(t *testing.T) {
	rule, fault := parseRule(`SUBSYSTEM=="tty|usb*", SUBSYSTEM!="usbmisc", KERNEL=="tty*"`, maxInstructions)
	if fault != nil {
		t.Fatal(fault)
	}
	for name, want := range map[string]bool{"tty": true, "usb": true, "usbmisc": false, "block": false} {
		if got := rule.Admits(Subsystem, name); got != want {
			t.Errorf("subsystem %s: %t, want %t", name, got, want)
		}
	}
	if !rule.Admits(Kernel, "ttyUSB0") || rule.Admits(Kernel, "sda") {
		t.Error("the kernel's name is not compared")
	}
}

func TestReferences(t *testing.T) {
	parsed, err := Parse(`
udevRules: []
properties:
  NAME: KERNEL
  KIND: SUBSYSTEM
  VENDOR: ATTRS{idVendor}
  OWN_VENDOR: ATTR{idVendor}
  MAKER: ATTRS{manufacturer}
  SERIAL: ATTRS{serial}
  MODEL: ENV{ID_MODEL}
  DRIVER: DRIVER
id: ENV{ID_MODEL} ATTRS{interface}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, reference := range parsed.Properties {
		if value, found := reference.Value(camera()); found {
			got[name] = value
		}
	}
	want := map[string]string{"NAME": "video0", "KIND": "video4linux", "VENDOR": "046d", "MAKER": "Logi", "MODEL": "C920"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []Reference{{Env, "ID_MODEL"}, {Attrs, "interface"}}; !slices.Equal(parsed.ID, want) {
		t.Errorf("the id is %v, want %v", parsed.ID, want)
	}
}
