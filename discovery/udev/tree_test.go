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
		if got, found, err := m.tree().attribute(device, name); found || err != nil && !isAbsent(err) {
			t.Errorf("%s is %q, %v; want none", name, got, err)
		}
	}
}
