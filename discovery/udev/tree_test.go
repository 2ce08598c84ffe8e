package udev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAttributes reads what a device's directory may have.
func TestAttributes(t *testing.T) {
	m := newMachine(t)
	const device = "/devices/a"
	m.plug(device + "\n  subsystem bus/usb\n  driver usb\n  attr plain value\n  attr empty \n  link device ..\n  link outside /etc/hostname\n")
	m.write("two\nlines\n\n", m.sys, device, "lines")
	m.write(strings.Repeat("x", maxAttributeBytes+1), m.sys, device, "long")
	m.write("secret", m.sys, device, "writeonly")
	m.must(os.Chmod(filepath.Join(m.sys, device, "writeonly"), 0o200))
	m.write("below", m.sys, device, "dir", "attribute")
	for name, want := range map[string]string{
		"plain": "value", "empty": "", "lines": "two\nlines", "long": strings.Repeat("x", maxAttributeBytes),
		"dir/attribute": "below", "driver": "usb", "subsystem": "usb",
	} {
		if got, found := m.tree().attribute(device, name); got != want || !found {
			t.Errorf("%s is %q, %t; want %q", name, got, found, want)
		}
	}
	for _, name := range []string{"missing", "dir", "device", "outside", "writeonly", "module"} {
		if got, found := m.tree().attribute(device, name); found {
			t.Errorf("%s is %q, want none", name, got)
		}
	}
}

// TestBlockedAttribute reads a file that does not answer, as some drivers do. A pipe
// stands in for it.
func TestBlockedAttribute(t *testing.T) {
	m := newMachine(t)
	m.plug("/devices/a\n  subsystem bus/usb\n  attr quick value\n")
	pipe := filepath.Join(m.sys, "devices/a/slow")
	m.must(unix.Mkfifo(pipe, 0o644))
	failures := make(chan string, 100)
	read := newTree(m.sys, m.run, func(reason string) { failures <- reason })
	for range maxBlockedReads {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, found := read.readInTime(pipe); found {
				t.Error("the pipe has content")
			}
		}()
		defer func() { <-done }()
	}
	for deadline := time.Now().Add(10 * time.Second); len(read.blocked) < maxBlockedReads; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d reads are blocked, want %d", len(read.blocked), maxBlockedReads)
		}
	}
	if _, found := read.attribute("/devices/a", "quick"); found {
		t.Error("an attribute was read although too many reads are blocked")
	}
	for range maxBlockedReads + 1 {
		select {
		case reason := <-failures:
			if reason != failedAttribute {
				t.Errorf("failed by %s", reason)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a blocked read is not counted")
		}
	}
	// The pipe answers, so that the goroutines end.
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	m.must(err)
	writer.Close()
	for deadline := time.Now().Add(10 * time.Second); len(read.blocked) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("reads are still blocked")
		}
	}
	if value, found := read.attribute("/devices/a", "quick"); value != "value" || !found {
		t.Errorf("afterwards, the attribute is %q, %t", value, found)
	}
}

func TestDeviceOf(t *testing.T) {
	m := newMachine(t, "serial.txt", "hid.txt")
	for record, want := range map[string]string{
		"c188:0":                   "ttyUSB0",
		"b259:0":                   "nvme0n1",
		"n7":                       "wwan0",
		"+usb:3-1":                 "3-1",
		"+hid:0003:05E0:1200.0005": "0003:05E0:1200.0005",
		"+input:input9":            "input9",
		"c1:1":                     "",
		"n99":                      "",
		"+usb:..":                  "",
		"+..:usb":                  "",
		"+usb":                     "",
		"x":                        "",
		"":                         "",
		"c../../..":                "",
	} {
		devPath, found := m.tree().deviceOf(record)
		if found != (want != "") || found && filepath.Base(devPath) != want {
			t.Errorf("%q is the entry of %q, %t; want %q", record, devPath, found, want)
		}
	}
}
