package udev

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		if got, found, err := m.tree().attribute(device, name); got != want || !found || err != nil {
			t.Errorf("%s is %q, %t, %v; want %q", name, got, found, err, want)
		}
	}
	for _, name := range []string{"missing", "dir", "device", "outside", "writeonly", "module"} {
		if got, found, err := m.tree().attribute(device, name); found || err != nil {
			t.Errorf("%s is %q, %v; want none", name, got, err)
		}
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
		devPath, err := m.tree().deviceOf(record)
		found := err == nil
		if found != (want != "") || found && filepath.Base(devPath) != want {
			t.Errorf("%q is the entry of %q, %t; want %q", record, devPath, found, want)
		}
	}
}
