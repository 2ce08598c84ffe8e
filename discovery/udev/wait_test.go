package udev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newTTY is a device that is plugged in during the tests.
const (
	newTTY     = "/devices/pci0000:00/0000:00:14.0/usb3/3-2/3-2:1.0/ttyUSB9/tty/ttyUSB9"
	newTTYText = newTTY + "\n  subsystem class/tty\n  MAJOR=188\n  MINOR=9\n  DEVNAME=ttyUSB9\n"
	// newInterface has no device file.
	newInterface = "/devices/pci0000:00/0000:00:14.0/usb3/3-2/3-2:1.0"
)

// TestWaitForUdevd plays scripts about a device on a machine with udevd: newTTY, or another one.
//
//	start, stop     the handler starts, and scans; udevd has ended
//	plug, unplug    the device
//	store E:A=1     udevd has seen it, and stores an entry; drop removes that
//	event           an event of the device, now, or "early" or "late": shortly before or after udevdTimeout
//	scan, again     a scan, or a look at what is undecided, without an event
//	found, missing, waiting
//	                what the handler thinks of the device; settled if none is undecided
func TestWaitForUdevd(t *testing.T) {
	const before = "plug; start; waiting; store E:ID_SERIAL=x; again; found; settled"
	for name, tc := range map[string]struct{ rule, device, script string }{
		"it is not judged before udevd has seen it": {`KERNEL=="ttyUSB9", ENV{IGNORE}!="1"`, newTTY,
			"start; plug; event; waiting; event early; waiting; store E:IGNORE=1; event early; missing; " +
				"store E:IGNORE=0; event early; found; settled"},
		"udevd never sees it": {`KERNEL=="ttyUSB9", TAG!="x"`, newTTY,
			"start; plug; event; waiting; again late; found; event late; found"},
		"a scan finds it, and it goes": {`KERNEL=="ttyUSB9", TAG!="x"`, newTTY, "start; plug; scan; waiting; unplug; scan; settled"},
		"it stays while udevd replaces its entry": {`KERNEL=="ttyUSB0", ENV{ID_SERIAL}=="Silicon*", SUBSYSTEM=="tty"`, knownTTY,
			"start; found; drop; event; found; store E:ID_SERIAL=Other; event; missing"},
		// The handler may start while udevd still works, as when the machine boots.
		"a start before it has a property": {`KERNEL=="ttyUSB9", ENV{ID_SERIAL}=="x"`, newTTY, before},
		"a start before it lacks a tag":    {`KERNEL=="ttyUSB9", TAG!="x"`, newTTY, before},

		"a rule about the kernel only":          {`KERNEL=="ttyUSB9", ATTRS{idVendor}=="0403"`, newTTY, "start; plug; event; found"},
		"what udev does not change":             {`KERNEL=="ttyUSB9", ENV{MAJOR}=="188"`, newTTY, "start; plug; event; found"},
		"a device that has no device file":      {`KERNEL=="3-2:1.0", TAG!="x"`, newInterface, "start; plug; event; found"},
		"a machine on which udevd does not run": {`KERNEL=="ttyUSB9", TAG!="x"`, newTTY, "stop; start; plug; event; found"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiting{machine: newMachine(t, "serial.txt"), now: time.Now(), device: tc.device}
			w.startUdevd()
			w.finder = newFinder(w.tree(), parse(t, rules(tc.rule)))
			for step := range strings.SplitSeq(tc.script, "; ") {
				verb, rest, _ := strings.Cut(step, " ")
				w.play(verb, rest)
			}
		})
	}
}

// waiting is a machine with udevd, and a finder.
type waiting struct {
	*machine

	finder *finder
	now    time.Time
	device string
}

// play does one step of a script.
func (w *waiting) play(verb, rest string) {
	w.t.Helper()
	ctx, at := w.t.Context(), w.now.Add(map[string]time.Duration{"early": udevdTimeout - 1, "late": udevdTimeout + 1}[rest])
	_, isUndecided := w.finder.undecided[w.device]
	isFound := w.finder.matches[w.device] != nil
	switch verb {
	case "start", "scan":
		w.must(w.finder.scan(ctx, w.now))
	case "stop":
		w.must(os.Remove(filepath.Join(w.run, "control")))
	case "plug":
		if w.device == newInterface {
			w.plug(newInterface + "\n  subsystem bus/usb\n")
		} else {
			w.plug(newTTYText)
		}
	case "unplug":
		w.unplug(w.device)
		w.must(os.Remove(filepath.Join(w.sys, "class/tty/ttyUSB9"))) // nothing leads to it any longer
	case "store":
		w.store(w.device, rest+"\n")
	case "drop":
		w.must(os.Remove(filepath.Join(w.run, "data", "c188:0")))
	case "event":
		w.finder.refresh(ctx, at, []string{w.device})
	case "again":
		w.must(w.finder.again(ctx, at))
	case "found", "missing", "waiting":
		got := "missing"
		switch {
		case isUndecided && !isFound:
			got = "waiting"
		case isFound:
			got = "found"
		}
		if got != verb {
			w.t.Errorf("it is %s, want %s; undecided: %t", got, verb, isUndecided)
		}
	case "settled":
		if len(w.finder.undecided) > 0 {
			w.t.Errorf("undecided are %v", w.finder.undecided)
		}
	default:
		w.t.Fatalf("unknown step %q", verb)
	}
}
