package udev

import (
	"syscall"
	"testing"
	"time"
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
	l.want(found0)
	answer := fault.block("3-1/idProduct")
	defer answer()
	h.hub.publish(usbStick)
	eventually(t, "the read is late", func() bool { return failures.of(failedAttribute) > 0 })
	// Another device shows that the handler goes on.
	m.plug("/devices/b\n  subsystem class/tty\n  MAJOR=4\n  MINOR=9\n  DEVNAME=ttyS9\n  attr idProduct ea60\n")
	h.hub.publish("/devices/b")
	l.want("b DEVNODE=/dev/ttyS9\n" + found0)
	m.unplug("/devices/b")
	h.hub.publish("/devices/b")
	l.want(found0)
	m.write("0000\n", m.sys, usbStick, "idProduct")
	answer()
	l.want("") // without an event
	m.write("ea60\n", m.sys, usbStick, "idProduct")
	h.hub.publish(usbStick)
	l.want(found0)
	again := fault.block("3-1/idProduct")
	defer again()
	h.hub.publish(usbStick)
	m.unplug(usbStick)
	h.hub.publish(usbStick)
	l.want("") // it is gone, whatever blocks
	l.quiet()
}

// TestSlowStart has an attribute that is read too late when the handler starts. The first
// list waits for it: without the device, the device would seem to be gone.
func TestSlowStart(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	answer := fault.block("3-1/idProduct")
	defer answer()
	l := discover(t, h, rules(stickRule))
	eventually(t, "the read is late", func() bool { return failures.of(failedAttribute) > 0 })
	l.quiet()
	answer()
	l.want(found0)
}

// TestStuckStart has an attribute that is never read. The first list waits only so long.
func TestStuckStart(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, _ := m.faultyHandler()
	answer := fault.block("3-1/idProduct")
	defer answer()
	h.firstListTimeout = 200 * time.Millisecond
	began := time.Now()
	l := discover(t, h, rules(stickRule))
	l.want("")
	if took := time.Since(began); took < h.firstListTimeout {
		t.Errorf("the first list came after %v", took)
	}
	answer()
	l.want(found0)
}

// TestManyRequests has more requests than reads may be stuck, all of them reading the same
// attribute at the same time.
func TestManyRequests(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	h.tree.reader.timeout = time.Hour
	answer := fault.block("3-1/idProduct")
	defer answer()
	listeners := make([]*listener, 2*maxStuckReads)
	for i := range listeners {
		listeners[i] = discover(t, h, rules(stickRule))
	}
	eventually(t, "all requests read", func() bool { return fault.begun("3-1/idProduct") == len(listeners) })
	answer()
	for _, l := range listeners {
		l.want(found0)
	}
	if got := failures.of(failedAttribute); got != 0 {
		t.Errorf("%d failures", got)
	}
}

// TestFailedScan repeats a scan that failed, long before the next one.
func TestFailedScan(t *testing.T) {
	m := newMachine(t, "serial.txt")
	h, fault, failures := m.faultyHandler()
	l := discover(t, h, rules(stickRule))
	l.want(found0)
	fault.set("class/tty", syscall.EMFILE)
	h.hub.publish() // scans
	eventually(t, "the scan fails", func() bool { return failures.of(failedScan) > 0 })
	m.plug("/devices/b\n  subsystem class/tty\n  MAJOR=4\n  MINOR=9\n  DEVNAME=ttyS9\n  attr idProduct ea60\n")
	fault.set("class/tty", nil)
	l.want("b DEVNODE=/dev/ttyS9\n" + found0) // without an event
}
