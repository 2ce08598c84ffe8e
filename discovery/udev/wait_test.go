package udev

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// waiting is a machine with udevd and a finder that has scanned it.
type waiting struct {
	*machine
	finder *finder
	now    time.Time
}

// newTTY is a device that is plugged in during the tests.
const (
	newTTY     = "/devices/pci0000:00/0000:00:14.0/usb3/3-2/3-2:1.0/ttyUSB9/tty/ttyUSB9"
	newTTYText = newTTY + "\n  subsystem class/tty\n  MAJOR=188\n  MINOR=9\n  DEVNAME=ttyUSB9\n"
)

func newWaiting(t *testing.T, rule string) *waiting {
	t.Helper()
	m := newMachine(t, "serial.txt")
	m.startUdevd()
	w := &waiting{machine: m, finder: newFinder(m.tree(), parse(t, rules(rule))), now: time.Now()}
	w.must(w.finder.scan(t.Context(), w.now))
	return w
}

// check refreshes a device some time after the start.
func (w *waiting) check(devPath string, after time.Duration, want bool) {
	w.t.Helper()
	w.finder.refresh(w.t.Context(), w.now.Add(after), []string{devPath})
	if got := w.finder.matches[devPath] != nil; got != want {
		w.t.Errorf("after %v: found: %t, want %t", after, got, want)
	}
}

// A new device is not judged before udevd has seen it.
func TestWaitForEntry(t *testing.T) {
	w := newWaiting(t, `KERNEL=="ttyUSB9", ENV{ID_MM_DEVICE_IGNORE}!="1"`)
	w.plug(newTTYText)
	w.check(newTTY, 0, false)
	w.check(newTTY, udevdTimeout-1, false)
	if since := w.finder.undecided[newTTY]; !since.Equal(w.now) {
		t.Errorf("it is undecided since %v", since)
	}
	w.store(newTTY, "E:ID_MM_DEVICE_IGNORE=1\n")
	w.check(newTTY, udevdTimeout-1, false)
	w.store(newTTY, "E:ID_MM_DEVICE_IGNORE=0\n")
	w.check(newTTY, udevdTimeout-1, true)
	if len(w.finder.undecided) > 0 {
		t.Error("the device still waits")
	}
}

func TestUdevdNeverSeesADevice(t *testing.T) {
	w := newWaiting(t, `KERNEL=="ttyUSB9", TAG!="x"`)
	w.plug(newTTYText)
	w.check(newTTY, 0, false)
	w.must(w.finder.again(t.Context(), w.now.Add(udevdTimeout))) // without an event
	if w.finder.matches[newTTY] == nil {
		t.Error("it is not found without udevd")
	}
	w.check(newTTY, udevdTimeout+1, true)
}

func TestScanFindsADeviceThatUdevdHasNotSeen(t *testing.T) {
	w := newWaiting(t, `KERNEL=="ttyUSB9", TAG!="x"`)
	w.plug(newTTYText)
	if err := w.finder.scan(t.Context(), w.now); err != nil || w.finder.matches[newTTY] != nil {
		t.Errorf("found: %t, %v", w.finder.matches[newTTY] != nil, err)
	}
	w.unplug(newTTY)
	w.must(os.Remove(filepath.Join(w.sys, "class/tty/ttyUSB9"))) // nothing leads to it any longer
	if err := w.finder.scan(t.Context(), w.now); err != nil || len(w.finder.undecided) > 0 {
		t.Errorf("it still waits: %v, %v", w.finder.undecided, err)
	}
}

// While udevd replaces an entry, the device stays.
func TestEntryIsReplaced(t *testing.T) {
	w := newWaiting(t, `KERNEL=="ttyUSB0", ENV{ID_SERIAL}=="Silicon*", SUBSYSTEM=="tty"`)
	const known = stickTTY + "/tty/ttyUSB0"
	w.must(os.Remove(filepath.Join(w.run, "data", "c188:0")))
	w.check(known, 0, true)
	w.store(known, "E:ID_SERIAL=Other\n")
	w.check(known, 0, false)
}

// The handler may start while udevd still works, as when the machine boots: the first list
// must not lack a device because of that.
func TestStartBeforeUdevdHasFinished(t *testing.T) {
	for name, rule := range map[string]string{
		"a property that it will have": `KERNEL=="ttyUSB9", ENV{ID_SERIAL}=="x"`,
		"a tag that it lacks":          `KERNEL=="ttyUSB9", TAG!="x"`,
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "serial.txt")
			m.startUdevd()
			m.plug(newTTYText)
			f := newFinder(m.tree(), parse(t, rules(rule)))
			m.must(f.scan(t.Context(), time.Now()))
			if _, isOpen := f.undecided[newTTY]; !isOpen {
				t.Errorf("it does not wait: %v", f.matches)
			}
			m.store(newTTY, "E:ID_SERIAL=x\n")
			m.must(f.again(t.Context(), time.Now()))
			if f.matches[newTTY] == nil || len(f.undecided) > 0 {
				t.Errorf("found %v, undecided %v", f.matches, f.undecided)
			}
		})
	}
}

func TestNobodyWaitsForNothing(t *testing.T) {
	w := newWaiting(t, `KERNEL=="ttyUSB9", ATTRS{idVendor}=="0403"`) // of the kernel only
	w.plug(newTTYText)
	w.check(newTTY, 0, true)

	w = newWaiting(t, `KERNEL=="ttyUSB9", ENV{MAJOR}=="188"`) // which udev does not change
	w.plug(newTTYText)
	w.check(newTTY, 0, true)

	const interfaceOfStick = "/devices/pci0000:00/0000:00:14.0/usb3/3-2/3-2:1.0" // it has no device file
	w = newWaiting(t, `KERNEL=="3-2:1.0", TAG!="x"`)
	w.plug(interfaceOfStick + "\n  subsystem bus/usb\n")
	w.check(interfaceOfStick, 0, true)

	w = newWaiting(t, `KERNEL=="ttyUSB9", TAG!="x"`)
	w.must(os.Remove(filepath.Join(w.run, "control"))) // udevd does not run
	w.plug(newTTYText)
	w.check(newTTY, 0, true)
}
