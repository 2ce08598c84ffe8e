package udev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/handlertest"
)

// listener receives the lists of a running Discover.
type listener struct{ *handlertest.Call }

// discover runs Discover until the test ends.
func discover(t testing.TB, h discovery.Handler, details string) *listener {
	t.Helper()
	return &listener{handlertest.Open(t, h, discovery.Request{Details: details})}
}

// want waits for a list.
func (l *listener) want(t testing.TB, text string) {
	t.Helper()
	if got := describe(l.Next()); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
}

// until waits for a list; others may come before.
func (l *listener) until(text string) {
	l.Until(text, func(devices []discovery.Device) bool { return describe(devices) == text })
}

func (m *machine) handler() *testHandler {
	return newTestHandler(Options{Sys: m.sys, Run: m.run, ScanInterval: time.Hour})
}

const stickTTY = "/devices/pci0000:00/0000:00:14.0/usb3/3-1/3-1:1.0/ttyUSB0"

func TestDiscover(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h := m.handler()
	l := discover(t, h, rules(`SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4"`))
	nothing := discover(t, h, rules(`SUBSYSTEM=="video4linux"`))
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0\n")
	nothing.want(t, "") // the first list is sent even if it is empty

	h.hub.publish("/devices/pnp0/00:01/tty/ttyS0") // nothing has changed
	m.unplug(stickTTY)
	h.hub.publish(stickTTY)
	l.want(t, "")
	m.plug(stickTTY + "/tty/ttyUSB7\n  subsystem class/tty\n  MAJOR=188\n  MINOR=7\n  DEVNAME=ttyUSB7\n")
	h.hub.publish(stickTTY + "/tty/ttyUSB7")
	l.want(t, "ttyUSB7 DEVNODE=/dev/ttyUSB7\n")
	m.unplug(stickTTY)
	h.hub.publish() // events were lost
	l.want(t, "")
	l.Quiet()
	nothing.Quiet()
}

// TestDatabaseChanges has no event but the one of the directory of udevd's database.
func TestDatabaseChanges(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h := New(Options{Sys: m.sys, Run: m.run, ScanInterval: time.Hour}) // which also listens to the kernel
	l := discover(t, h, rules(`SUBSYSTEM=="tty", ENV{ID_MODEL}=="X"`)+"properties: {V: 'ENV{V}'}")
	l.want(t, "")
	const tty = stickTTY + "/tty/ttyUSB0"
	m.store(tty, "E:ID_MODEL=X\n")
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0\n")
	m.store(tty, "E:ID_MODEL=X\nE:V=2\n")
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0 V=2\n")
	m.must(os.Remove(filepath.Join(m.run, "data", "c188:0")))
	l.want(t, "")
}

// TestUdevdStartsLater creates the directory of the database while the handler runs, and
// replaces it.
func TestUdevdStartsLater(t *testing.T) {
	m := newMachine(t, "serial.txt")
	m.must(os.RemoveAll(filepath.Join(m.run, "data")))
	l := discover(t, m.handler(), rules(`SUBSYSTEM=="tty", TAG=="late"`))
	l.want(t, "")
	m.must(os.Mkdir(filepath.Join(m.run, "data"), 0o755))
	m.store(stickTTY+"/tty/ttyUSB0", "G:late\n")
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0\n")
	m.must(os.RemoveAll(m.run))
	l.want(t, "")
	m.must(os.MkdirAll(filepath.Join(m.run, "data"), 0o755))
	m.store(stickTTY+"/tty/ttyUSB0", "G:late\n")
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0\n")
}

// TestBurst checks that the first change is sent at once and the others together.
func TestBurst(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h := m.handler()
	l := discover(t, h, rules(`SUBSYSTEM=="tty", KERNEL=="ttyX*"`))
	l.want(t, "")
	const ports = 20
	for i := range ports {
		name := string(rune('a' + i))
		m.plug(stickTTY + "/tty/ttyX" + name + "\n  subsystem class/tty\n  MAJOR=188\n  MINOR=1" + name + "\n  DEVNAME=ttyX" + name + "\n")
	}
	began, lists := time.Now(), 0
	for i := range ports {
		h.hub.publish(stickTTY + "/tty/ttyX" + string(rune('a'+i)))
	}
	for devices := l.Next(); len(devices) < ports; devices = l.Next() {
		lists++
	}
	if most := 1 + int(time.Since(began)/sendInterval); lists > most {
		t.Errorf("%d lists within %v, want at most %d", lists, time.Since(began), most)
	}
}

func TestDiscoverErrors(t *testing.T) {
	m := newMachine(t, "serial.txt")
	send := func([]discovery.Device) error { return nil }
	err := m.handler().Discover(t.Context(), discovery.Request{Details: "udevRules: ['KERNEL=1']"}, send)
	if err == nil || !strings.Contains(err.Error(), "udevRules[0]: column 7") {
		t.Errorf("got %v, want an error for the author", err)
	}
	gone := errors.New("the agent is gone")
	err = m.handler().Discover(t.Context(), discovery.Request{Details: "udevRules: []"}, func([]discovery.Device) error { return gone })
	if !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
	h := newTestHandler(Options{Sys: filepath.Join(m.sys, "missing"), Run: m.run})
	if err = h.Discover(t.Context(), discovery.Request{Details: "udevRules: []"}, send); err == nil {
		t.Error("sysfs is missing, but there is no error")
	}
	if len(h.hub.subscriptions) > 0 {
		t.Error("the source of events is still open")
	}
}

// TestNoEvents has a kernel that sends no events. Scans replace them.
func TestNoEvents(t *testing.T) {
	m := newMachine(t, "serial.txt")
	read, _, failures := m.faulty()
	h := newTestHandler(Options{ScanInterval: 50 * time.Millisecond})
	h.tree, h.openEvents = read, func() (source, error) { return nil, errors.New("no sockets of this family") }
	l := discover(t, h, rules(`SUBSYSTEM=="tty", KERNEL=="ttyUSB0"`))
	l.want(t, "ttyUSB0 DEVNODE=/dev/ttyUSB0\n")
	m.unplug(stickTTY)
	l.want(t, "")
	handlertest.Await(t, "it is counted", func() bool { return failures.of(failedUevents) == 1 })
}

// TestMoreEventsThanWait has more events than may wait for a request, which is busy.
func TestMoreEventsThanWait(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	h.tree.reader.timeout = time.Hour
	l := discover(t, h, rules(stickRule))
	l.want(t, found0)
	answer := fault.block("3-1/idProduct")
	defer answer()
	before := fault.begun("3-1/idProduct")
	h.hub.publish(usbStick)
	handlertest.Await(t, "the attribute is read", func() bool { return fault.begun("3-1/idProduct") > before })
	for i := range maxEvents + 50 {
		h.hub.publish(fmt.Sprintf("/devices/%d", i))
	}
	m.unplug(usbStick)
	h.hub.publish(usbStick)
	h.hub.publish() // events were lost
	answer()
	l.want(t, "")
	handlertest.Await(t, "the loss is counted", func() bool { return failures.of(failedEventsLost) == 1 })
	l.Quiet()
}

// TestChangesOfTheDatabaseInOneTick has two changes with one timestamp. The second one may
// come after the first has been seen.
func TestChangesOfTheDatabaseInOneTick(t *testing.T) {
	m := newMachine(t, "serial.txt")
	s, now := &search{Handler: m.handler().Handler}, time.Now()
	changed := now.Add(-time.Hour)
	want := func(what string, at time.Time, want bool) {
		t.Helper()
		m.must(os.Chtimes(filepath.Join(m.run, "data"), changed, changed))
		if got := s.hasNewEntries(at); got != want {
			t.Errorf("%s: %t, want %t", what, got, want)
		}
	}
	want("at first", now, true)
	want("nothing has changed", now, false)
	changed = now
	want("a change just now", now, true)
	want("perhaps another one", now.Add(timestampAge), true)
	want("none after that", now.Add(timestampAge+1), true)
	want("it is known", now.Add(timestampAge+1), false)
	changed = now.Add(time.Hour)
	want("the clock was set back", now, true)
	want("nothing has changed since", now, false)
}

// TestDuplicatesAreCountedOnce has two devices with one id. They work, so they are not counted
// whenever something else happens.
func TestDuplicatesAreCountedOnce(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, _, failures := m.faultyHandler()
	l := discover(t, h, rules(`SUBSYSTEM=="tty", DRIVERS=="ftdi_sio"`, `KERNEL=="ttyUSB7"`)+"id: ENV{ID_SERIAL}")
	l.want(t, "ttyUSB1 DEVNODE=/dev/ttyUSB1\nttyUSB2 DEVNODE=/dev/ttyUSB2\n")
	h.hub.publish("/devices/pnp0/00:01/tty/ttyS0")
	h.hub.publish() // scans
	handlertest.Await(t, "the loss of events is counted", func() bool { return failures.of(failedEventsLost) == 1 })
	m.plug(stickTTY + "/tty/ttyUSB7\n  subsystem class/tty\n  MAJOR=188\n  MINOR=7\n  DEVNAME=ttyUSB7\n")
	h.hub.publish(stickTTY + "/tty/ttyUSB7")
	l.want(t, "ttyUSB7 DEVNODE=/dev/ttyUSB7\nttyUSB1 DEVNODE=/dev/ttyUSB1\nttyUSB2 DEVNODE=/dev/ttyUSB2\n")
	if got := failures.of(failedDuplicateID); got != 4 {
		t.Errorf("%d failures for two lists with two devices each", got)
	}
}
