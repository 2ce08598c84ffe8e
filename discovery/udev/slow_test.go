package udev

import (
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/discovery/handlertest"
)

// faultyHandler returns an impatient handler whose files can fail. It scans once.
func (m *machine) faultyHandler() (*testHandler, *faults, *failureCount) {
	read, fault, failures := m.faulty()
	read.reader.timeout = 50 * time.Millisecond
	h := newTestHandler(Options{ScanInterval: time.Hour})
	h.tree = read
	return h, fault, failures
}

const found0 = "ttyUSB0 DEVNODE=/dev/ttyUSB0\n"

// TestSlowAttribute has an attribute that is sometimes read too late. The device stays.
func TestSlowAttribute(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	l := discover(t, h, rules(stickRule))
	l.want(t, found0)
	answer := fault.block("3-1/idProduct")
	defer answer()
	h.hub.publish(usbStick)
	handlertest.Await(t, "the read is late", func() bool { return failures.of(failedAttribute) > 0 })
	// Another device shows that the handler goes on.
	m.plug("/devices/b\n  subsystem class/tty\n  MAJOR=4\n  MINOR=9\n  DEVNAME=ttyS9\n  attr idProduct ea60\n")
	h.hub.publish("/devices/b")
	l.want(t, "b DEVNODE=/dev/ttyS9\n"+found0)
	m.unplug("/devices/b")
	h.hub.publish("/devices/b")
	l.want(t, found0)
	m.write("0000\n", m.sys, usbStick, "idProduct")
	answer()
	l.want(t, "") // without an event
	m.write("ea60\n", m.sys, usbStick, "idProduct")
	h.hub.publish(usbStick)
	l.want(t, found0)
	again := fault.block("3-1/idProduct")
	defer again()
	h.hub.publish(usbStick)
	m.unplug(usbStick)
	h.hub.publish(usbStick)
	l.want(t, "") // it is gone, whatever blocks
	l.Quiet()
}

// TestStart has an attribute that is read too late when the handler starts. The first list waits
// for it, as the device would seem to be gone without it, but only so long.
func TestStart(t *testing.T) {
	for _, isStuck := range []bool{false, true} {
		m := newMachine(t, "serial.txt")
		h, fault, failures := m.faultyHandler()
		answer := fault.block("3-1/idProduct")
		defer answer()
		began := time.Now()
		if isStuck {
			h.firstListTimeout = 200 * time.Millisecond
		}
		l := discover(t, h, rules(stickRule))
		if isStuck {
			l.want(t, "")
			if took := time.Since(began); took < h.firstListTimeout {
				t.Errorf("the first list came after %v", took)
			}
		} else {
			handlertest.Await(t, "the read is late", func() bool { return failures.of(failedAttribute) > 0 })
			l.Quiet()
		}
		answer()
		l.want(t, found0)
	}
}

// TestFailedScan repeats a scan that failed, long before the next one.
func TestFailedScan(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	l := discover(t, h, rules(stickRule))
	l.want(t, found0)
	fault.set("class/tty", syscall.EMFILE)
	h.hub.publish() // scans
	handlertest.Await(t, "the scan fails", func() bool { return failures.of(failedScan) > 0 })
	m.plug("/devices/b\n  subsystem class/tty\n  MAJOR=4\n  MINOR=9\n  DEVNAME=ttyS9\n  attr idProduct ea60\n")
	fault.set("class/tty", nil)
	l.want(t, "b DEVNODE=/dev/ttyS9\n"+found0) // without an event
}
