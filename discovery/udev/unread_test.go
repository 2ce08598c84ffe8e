package udev

import (
	"maps"
	"os"
	"path/filepath"
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
		"an attribute, EIO":                  {stickRule, "3-1/idProduct", syscall.EIO},
		"an attribute, EINTR":                {stickRule, "3-1/idProduct", syscall.EINTR},
		"an attribute, EAGAIN":               {stickRule, "3-1/idProduct", syscall.EAGAIN},
		"an attribute, no descriptors":       {stickRule, "3-1/idProduct", syscall.EMFILE},
		"an attribute, none on the node":     {stickRule, "3-1/idProduct", syscall.ENFILE},
		"an attribute that a property has":   {stickRule, "3-1/manufacturer", syscall.EIO},
		"an attribute that must differ":      {`SUBSYSTEM=="tty", KERNEL=="ttyUSB0", ATTRS{idProduct}!="0000"`, "3-1/idProduct", syscall.EIO},
		"the kernel's properties":            {stickRule, "/ttyUSB0/uevent", syscall.EMFILE},
		"the kernel's properties in a rule":  {`SUBSYSTEM=="tty", ENV{MAJOR}=="188", ENV{MINOR}=="0"`, "/ttyUSB0/uevent", syscall.EIO},
		"the kernel's properties, for a tag": {`SUBSYSTEM=="tty", TAG=="seat"`, "/ttyUSB0/uevent", syscall.EMFILE},
		"udev's entry":                       {stickRule, "data/c188:0", syscall.EMFILE},
		"udev's entry in a rule":             {`SUBSYSTEM=="tty", ENV{ID_SERIAL_SHORT}=="0a1b2c3d4e5f"`, "data/c188:0", syscall.EINTR},
		"udev's entry with a missing tag":    {`SUBSYSTEM=="tty", KERNEL=="ttyUSB0", TAG!="x"`, "data/c188:0", syscall.ENFILE},
		"the link of its subsystem":          {stickRule, "/tty/ttyUSB0/subsystem", syscall.ENOMEM},
		"the link of an ancestor's driver":   {`KERNEL=="ttyUSB0", SUBSYSTEM=="tty", DRIVERS=="cp210x"`, "/driver", syscall.ENOMEM},
		"a link as an attribute":             {`KERNEL=="ttyUSB0", SUBSYSTEM=="tty", ATTRS{driver}=="cp210x"`, "/driver", syscall.EIO},
		"the link of its group":              {stickRule, "iommu_group", syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "serial.txt")
			m.startUdevd() // nobody waits for it: all devices have an entry
			m.store(knownTTY, "E:ID_MODEL=CP2102N\nE:ID_SERIAL_SHORT=0a1b2c3d4e5f\nG:seat\n")
			d := parse(t, rules(tc.rule)+details)
			read, fault, failures := m.faulty()
			known, now := newFinder(read, d), time.Now()
			m.must(known.scan(t.Context(), now, true))
			before := known.matches[knownTTY]
			if before == nil || len(known.matches) != 1 || len(known.retries) != 0 {
				t.Fatalf("at first: %v, %v", known.matches, known.retries)
			}
			fault.set(tc.file, tc.err)
			fresh := newFinder(read, d)
			for i, f := range []*finder{known, fresh} {
				for _, look := range []func(){
					func() { m.must(f.scan(t.Context(), now, false)) },
					func() { f.refresh(t.Context(), now, []string{knownTTY}) },
				} {
					look()
					if got := f.matches[knownTTY]; got != nil != (f == known) || f == known && got != before {
						t.Errorf("finder %d: while it cannot be read: %+v", i, got)
					}
					if deadline, ok := f.nextDeadline(now); !ok || !deadline.Equal(now.Add(minRetryDelay)) {
						t.Errorf("finder %d: evaluated again at %v, %t", i, deadline, ok)
					}
				}
			}
			if failures.of(failedRead) == 0 {
				t.Error("it is not counted")
			}
			fault.set(tc.file, nil)
			now = now.Add(minRetryDelay)
			for i, f := range []*finder{known, fresh} {
				again := f.overdue(now)
				if !slices.Contains(again, knownTTY) {
					t.Fatalf("finder %d: not evaluated again, but %q", i, again)
				}
				f.refresh(t.Context(), now, again)
				if f.matches[knownTTY] == nil || len(f.retries) != 0 {
					t.Errorf("finder %d: afterwards: %v, %v", i, f.matches, f.retries)
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
		m.must(f.scan(t.Context(), time.Now(), true))
		fault.set("3-1/idProduct", err)
		m.must(f.scan(t.Context(), time.Now(), false))
		if len(f.matches) != 0 || len(f.retries) != 0 || failures.of(failedRead) != 0 {
			t.Errorf("%v: %v, %v, %d failures", err, f.matches, f.retries, failures.of(failedRead))
		}
	}
}

// TestGoneWhileUnread removes devices that cannot be read: they go at once.
func TestGoneWhileUnread(t *testing.T) {
	for name, look := range map[string]func(t *testing.T, f *finder){
		"scan":    func(t *testing.T, f *finder) { _ = f.scan(t.Context(), time.Now(), false) },
		"refresh": func(t *testing.T, f *finder) { f.refresh(t.Context(), time.Now(), []string{usbStick}) },
		"again": func(t *testing.T, f *finder) {
			f.refresh(t.Context(), time.Now(), f.overdue(time.Now().Add(time.Hour)))
		},
	} {
		for _, file := range []string{"3-1/idProduct", "class/tty", "class"} {
			m := newMachine(t, "serial.txt")
			read, fault, _ := m.faulty()
			f := newFinder(read, parse(t, rules(stickRule)))
			m.must(f.scan(t.Context(), time.Now(), true))
			fault.set("3-1/idProduct", syscall.EIO)
			m.must(f.scan(t.Context(), time.Now(), false))
			if f.matches[knownTTY] == nil || len(f.retries) == 0 {
				t.Fatalf("%s: it is not evaluated again", name)
			}
			fault.set(file, syscall.EIO)
			m.unplug(usbStick)
			look(t, f)
			if len(f.matches) != 0 || len(f.retries) != 0 {
				t.Errorf("%s, %s: %v, %v", name, file, f.matches, f.retries)
			}
		}
	}
}

// TestGoneWhileRead removes a device while its driver works on the answer.
func TestGoneWhileRead(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, fault, _ := m.faulty()
	read.reader.timeout = time.Hour
	f := newFinder(read, parse(t, rules(stickRule)))
	m.must(f.scan(t.Context(), time.Now(), true))
	before := fault.begun("3-1/idProduct")
	answer, done := fault.block("3-1/idProduct"), make(chan bool)
	defer answer()
	go func() { done <- f.refresh(t.Context(), time.Now(), []string{knownTTY}) }()
	eventually(t, "the attribute is read", func() bool { return fault.begun("3-1/idProduct") > before })
	m.unplug(usbStick)
	fault.set("3-1/idProduct", syscall.EIO)
	answer()
	if <-done; len(f.matches) != 0 || len(f.retries) != 0 {
		t.Errorf("%v, %v", f.matches, f.retries)
	}
}

// TestUnreadLists makes lists of sysfs fail. Known devices stay, and are kept up to date.
func TestUnreadLists(t *testing.T) {
	for _, file := range []string{"/class", "/bus", "/class/tty", "class/tty/ttyUSB1"} {
		m := newMachine(t, "serial.txt")
		read, fault, _ := m.faulty()
		f := newFinder(read, parse(t, rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4|0403"`)+"properties: {P: 'ATTRS{idProduct}'}"))
		m.must(f.scan(t.Context(), time.Now(), true))
		before := slices.Sorted(maps.Keys(f.matches))
		if len(before) < 3 {
			t.Fatalf("only %q", before)
		}
		fault.set(file, syscall.EMFILE)
		m.write("0001\n", m.sys, usbStick, "idProduct")
		if err := f.scan(t.Context(), time.Now(), false); err == nil {
			t.Errorf("%s: no error", file)
		}
		if after := slices.Sorted(maps.Keys(f.matches)); !slices.Equal(after, before) {
			t.Errorf("%s: %q, want %q", file, after, before)
		} else if got := f.matches[knownTTY].properties["P"]; got != "0001" {
			t.Errorf("%s: the attribute is %s", file, got)
		}
		if err := newFinder(read, f.details).scan(t.Context(), time.Now(), true); err == nil {
			t.Errorf("%s: the first list would lack devices", file)
		}
	}
}

// TestUnreadDirectory makes the directory of a device with an event fail.
func TestUnreadDirectory(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, fault, _ := m.faulty()
	f := newFinder(read, parse(t, rules(stickRule)))
	m.must(f.scan(t.Context(), time.Now(), true))
	fault.set(stickTTY, syscall.ENFILE)
	if f.refresh(t.Context(), time.Now(), []string{usbStick}) || f.matches[knownTTY] == nil {
		t.Errorf("complete, or lost: %v", f.matches)
	}
}

// TestRetriesBackOff evaluates a device again and again.
func TestRetriesBackOff(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, fault, _ := m.faulty()
	fault.set("3-1/idProduct", syscall.EMFILE)
	f, now := newFinder(read, parse(t, rules(stickRule))), time.Now()
	m.must(f.scan(t.Context(), now, true))
	for _, want := range []time.Duration{1, 2, 4, 8, 8} {
		deadline, _ := f.nextDeadline(now)
		if got := deadline.Sub(now); got != want*time.Second {
			t.Errorf("evaluated again after %v, want %v s", got, int(want))
		}
		m.must(f.scan(t.Context(), now, false)) // in between, which changes nothing
		now = deadline
		f.refresh(t.Context(), now, f.overdue(now))
	}
}

// TestEventWithoutDescriptors has an entry of udev's database whose device cannot be
// found out: it may be any.
func TestEventWithoutDescriptors(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, fault, _ := m.faulty()
	w, err := openDataWatch(read)
	m.must(err)
	defer w.close()
	for record, file := range map[string]string{
		"n7": "wwan0/ifindex", "n8": "class/net", "c188:0": "char/188:0", "+usb:3-1": "bus/usb/devices/3-1",
	} {
		fault.set(file, syscall.EMFILE)
		if devPath, err := read.deviceOf(record); err == nil || isAbsent(err) {
			t.Errorf("%s: the device is %q, %v", record, devPath, err)
		}
		fault.set(file, nil)
	}
	fault.set("188:0", syscall.EMFILE)
	m.store(knownTTY, "G:x\n")
	for deadline := time.After(limit); ; {
		select {
		case event := <-w.watcher.Events:
			devPath, ok, err := w.changed(event)
			m.must(err)
			if ok {
				if devPath != "" {
					t.Errorf("the event is about %s", devPath)
				}
				return
			}
		case <-deadline:
			t.Fatal("no event")
		}
	}
}

// TestNoDescriptors lets the process run out of file descriptors.
func TestNoDescriptors(t *testing.T) {
	m := newMachine(t, "serial.txt")
	f := newFinder(m.tree(), parse(t, rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4"`)))
	m.must(f.scan(t.Context(), time.Now(), true))
	var limit syscall.Rlimit
	m.must(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	m.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}))
	refreshed := f.refresh(t.Context(), time.Now(), []string{usbStick})
	scanned := f.scan(t.Context(), time.Now(), false)
	m.must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if refreshed || scanned == nil || f.matches[knownTTY] == nil {
		t.Errorf("refreshed: %t, scanned: %v, matches: %v", refreshed, scanned, f.matches)
	}
	m.must(os.RemoveAll(filepath.Join(m.sys, usbStick)))
	if f.refresh(t.Context(), time.Now(), []string{usbStick}); f.matches[knownTTY] != nil {
		t.Error("it is gone, but still listed")
	}
}
