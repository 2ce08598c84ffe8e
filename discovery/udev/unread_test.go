package udev

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	usbStick  = "/devices/pci0000:00/0000:00:14.0/usb3/3-1"
	knownTTY  = stickTTY + "/tty/ttyUSB0"
	stickRule = `SUBSYSTEM=="tty", ATTRS{idProduct}=="ea60"`
)

// TestUnreadFiles makes each kind of read fail for a device that is known and for one
// that is not. The known one stays as it was, and the other appears when the file can be
// read.
func TestUnreadFiles(t *testing.T) {
	const details = "symlinks: true\nproperties: {MODEL: 'ENV{ID_MODEL}', MAKER: 'ATTRS{manufacturer}'}"
	for name, tc := range map[string]struct {
		rule, file string
		err        error
	}{
		"an attribute, EIO":                 {stickRule, "3-1/idProduct", syscall.EIO},
		"an attribute, no descriptors":      {stickRule, "3-1/idProduct", syscall.EMFILE},
		"an attribute that a property has":  {stickRule, "3-1/manufacturer", syscall.EIO},
		"an attribute that must differ":     {`SUBSYSTEM=="tty", KERNEL=="ttyUSB0", ATTRS{idProduct}!="0000"`, "3-1/idProduct", syscall.EIO},
		"the kernel's properties":           {stickRule, "/ttyUSB0/uevent", syscall.EMFILE},
		"the kernel's properties in a rule": {`SUBSYSTEM=="tty", ENV{MAJOR}=="188", ENV{MINOR}=="0"`, "/ttyUSB0/uevent", syscall.EIO},
		"udev's entry":                      {stickRule, "data/c188:0", syscall.EMFILE},
		"udev's entry with a missing tag":   {`SUBSYSTEM=="tty", KERNEL=="ttyUSB0", TAG!="x"`, "data/c188:0", syscall.ENFILE},
		"the link of its subsystem":         {stickRule, "/tty/ttyUSB0/subsystem", syscall.ENOMEM},
		"the link of an ancestor's driver":  {`KERNEL=="ttyUSB0", SUBSYSTEM=="tty", DRIVERS=="cp210x"`, "/driver", syscall.ENOMEM},
		"a link as an attribute":            {`KERNEL=="ttyUSB0", SUBSYSTEM=="tty", ATTRS{driver}=="cp210x"`, "/driver", syscall.EIO},
		"the link of its group":             {stickRule, "iommu_group", syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "serial.txt")
			m.startUdevd() // nobody waits for it: all devices have an entry
			m.store(knownTTY, "E:ID_MODEL=CP2102N\nE:ID_SERIAL_SHORT=0a1b2c3d4e5f\nG:seat\n")
			d := parse(t, rules(tc.rule)+details)
			read, fault, failures := m.faulty()
			known, now := newFinder(read, d), time.Now()
			m.must(known.scan(t.Context(), now))
			before := known.matches[knownTTY]
			if before == nil || len(known.matches) != 1 || len(known.undecided) != 0 {
				t.Fatalf("at first: %v, %v", known.matches, known.undecided)
			}
			fault.set(tc.file, tc.err)
			fresh := newFinder(read, d)
			for i, f := range []*finder{known, fresh} {
				for _, look := range []func(){
					func() { m.must(f.scan(t.Context(), now)) },
					func() { f.refresh(t.Context(), now, []string{knownTTY}) },
				} {
					look()
					if got := f.matches[knownTTY]; got != nil != (f == known) || f == known && got != before {
						t.Errorf("finder %d: while it cannot be read: %+v", i, got)
					}
					if !f.undecided[knownTTY].Equal(now) {
						t.Errorf("finder %d: undecided are %v", i, f.undecided)
					}
				}
			}
			if failures.of(failedRead) == 0 {
				t.Error("it is not counted")
			}
			fault.set(tc.file, nil)
			for i, f := range []*finder{known, fresh} {
				m.must(f.again(t.Context(), now.Add(checkInterval))) // without an event
				if f.matches[knownTTY] == nil || len(f.undecided) != 0 {
					t.Errorf("finder %d: afterwards: %v, %v", i, f.matches, f.undecided)
				}
			}
		})
	}
}

// TestMissingFiles has errors that are answers: the device has no such value.
func TestMissingFiles(t *testing.T) {
	for _, err := range []error{
		syscall.ENOENT, syscall.ENODEV, syscall.ENXIO, syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENODATA, syscall.EACCES,
	} {
		m := newMachine(t, "serial.txt")
		read, fault, failures := m.faulty()
		f := newFinder(read, parse(t, rules(stickRule)))
		m.must(f.scan(t.Context(), time.Now()))
		fault.set("3-1/idProduct", err)
		m.must(f.scan(t.Context(), time.Now()))
		if len(f.matches) != 0 || len(f.undecided) != 0 || failures.of(failedRead) != 0 {
			t.Errorf("%v: %v, %v, %d failures", err, f.matches, f.undecided, failures.of(failedRead))
		}
	}
}

// TestGoneWhileUnread removes devices that cannot be read: they go at once.
func TestGoneWhileUnread(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, f *finder){
		"scan":    func(t *testing.T, f *finder) { _ = f.scan(t.Context(), time.Now()) },
		"refresh": func(t *testing.T, f *finder) { f.refresh(t.Context(), time.Now(), []string{usbStick}) },
		"again": func(t *testing.T, f *finder) {
			_ = f.again(t.Context(), time.Now()) // the lists cannot be read
		},
	} {
		for _, file := range []string{"3-1/idProduct", "class/tty", "class"} {
			m := newMachine(t, "serial.txt")
			read, fault, _ := m.faulty()
			f := newFinder(read, parse(t, rules(stickRule)))
			m.must(f.scan(t.Context(), time.Now()))
			fault.set("3-1/idProduct", syscall.EIO)
			m.must(f.scan(t.Context(), time.Now()))
			if f.matches[knownTTY] == nil || len(f.undecided) == 0 {
				t.Fatalf("%s: it is not evaluated again", name)
			}
			fault.set(file, syscall.EIO)
			m.unplug(usbStick)
			look(t, f)
			if len(f.matches) != 0 || len(f.undecided) != 0 {
				t.Errorf("%s, %s: %v, %v", name, file, f.matches, f.undecided)
			}
		}
	}
}

// TestUnreadLists makes lists of sysfs fail. Known devices stay, and are kept up to date.
func TestUnreadLists(t *testing.T) {
	for _, file := range []string{"/class", "/bus", "/class/tty", "class/tty/ttyUSB1"} {
		m := newMachine(t, "serial.txt")
		read, fault, _ := m.faulty()
		f := newFinder(read, parse(t, rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4|0403"`)+"properties: {P: 'ATTRS{idProduct}'}"))
		m.must(f.scan(t.Context(), time.Now()))
		before := slices.Sorted(maps.Keys(f.matches))
		if len(before) < 3 {
			t.Fatalf("only %q", before)
		}
		fault.set(file, syscall.EMFILE)
		m.write("0001\n", m.sys, usbStick, "idProduct")
		if err := f.scan(t.Context(), time.Now()); err == nil {
			t.Errorf("%s: no error", file)
		}
		if after := slices.Sorted(maps.Keys(f.matches)); !slices.Equal(after, before) {
			t.Errorf("%s: %q, want %q", file, after, before)
		} else if got := f.matches[knownTTY].properties["P"]; got != "0001" {
			t.Errorf("%s: the attribute is %s", file, got)
		}
		if err := newFinder(read, f.details).scan(t.Context(), time.Now()); err == nil {
			t.Errorf("%s: the first list would lack devices", file)
		}
	}
}

// TestDriverFails lets a driver fail for long. Then the attribute counts as missing.
func TestDriverFails(t *testing.T) {
	for _, tc := range []struct {
		reason, rule string
		err          error
		after        time.Duration
		want         bool
	}{
		{"the driver may recover", stickRule, syscall.EIO, errorPatience, true},
		{"the device has no such attribute", stickRule, syscall.EIO, errorPatience + 1, false},
		{"and matches for that reason", `SUBSYSTEM=="tty", KERNEL=="ttyUSB0", ATTRS{idProduct}!="ea60"`, syscall.EIO, errorPatience + 1, true},
		{"that says nothing about the device", stickRule, syscall.EMFILE, time.Hour, true},
	} {
		m := newMachine(t, "serial.txt")
		read, fault, _ := m.faulty()
		f, now := newFinder(read, parse(t, rules(tc.rule))), time.Now()
		m.must(f.scan(t.Context(), now))
		fault.set("3-1/idProduct", tc.err)
		m.must(f.scan(t.Context(), now))
		m.must(f.again(t.Context(), now.Add(tc.after)))
		if got := f.matches[knownTTY] != nil; got != tc.want {
			t.Errorf("%s: found: %t, want %t", tc.reason, got, tc.want)
		}
		fault.set("3-1/idProduct", nil)
		m.must(f.scan(t.Context(), now.Add(tc.after)))
		if got, want := f.matches[knownTTY] != nil, tc.rule == stickRule; got != want || len(f.undecided) > 0 {
			t.Errorf("%s: afterwards: found: %t, undecided: %v", tc.reason, got, f.undecided)
		}
	}
}
