package udev

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"akri.sh/akri/discovery"
)

// stick is a serial adapter at a port of the hub, whose serial number is that of all of its
// kind.
func stick(port string) (devPath, text string) {
	devPath = "/devices/pci0000:00/0000:00:14.0/usb3/" + port + "/tty/ttyACM" + port
	return devPath, devPath + "\n  subsystem class/tty\n  MAJOR=166\n  MINOR=" + port + "\n  DEVNAME=ttyACM" + port +
		"\n  db E:ID_SERIAL=same\n"
}

// TestEqualSticks checks that the ids of two devices with the same serial number do not
// depend on which one was plugged in first: an Instance would be another device after a
// restart of the handler.
func TestEqualSticks(t *testing.T) {
	d := parse(t, rules(`SUBSYSTEM=="tty", ENV{ID_SERIAL}=="same"`)+"id: ENV{ID_SERIAL}")
	m := newMachine(t)
	f := newFinder(m.tree(), d)
	check := func(event string, want ...string) {
		t.Helper()
		restarted := found(t, m, rules(`SUBSYSTEM=="tty", ENV{ID_SERIAL}=="same"`)+"id: ENV{ID_SERIAL}")
		for what, devices := range map[string][]discovery.Device{"known": f.devices(), "after a restart": restarted} {
			var got []string
			for _, device := range devices {
				got = append(got, fmt.Sprintf("%s is %s", device.ID, device.Properties[DevNodeProperty]))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: got\n%q\nwant\n%q", event, what, got, want)
			}
		}
	}
	refresh := func(devPath string) {
		t.Helper()
		if !f.refresh(t.Context(), time.Now(), []string{devPath}) {
			t.Fatal("incomplete")
		}
	}
	first, text := stick("9")
	m.plug(text)
	refresh(first)
	check("one stick", "same is /dev/ttyACM9")
	second, text := stick("5")
	m.plug(text)
	refresh(second)
	check("two sticks", second+" is /dev/ttyACM5", first+" is /dev/ttyACM9")
	m.unplug(first)
	refresh(first)
	check("the first is gone", "same is /dev/ttyACM5")
	_, text = stick("9")
	m.plug(text)
	refresh(first)
	check("the first is back", second+" is /dev/ttyACM5", first+" is /dev/ttyACM9")
}

// TestIDLikeAPath has a device that names itself like the path of another one, which has no
// name. Agents would ignore one of two devices with the same id.
func TestIDLikeAPath(t *testing.T) {
	m := newMachine(t)
	path, text := stick("5")
	m.plug(text)
	m.store(path, "I:1\n")
	other, text := stick("9")
	m.plug(text)
	m.store(other, "E:ID_SERIAL="+path+"\n")
	var got []string
	for _, device := range found(t, m, rules(`SUBSYSTEM=="tty"`)+"id: ENV{ID_SERIAL}") {
		got = append(got, fmt.Sprintf("%s is %s", device.ID, device.Properties[DevNodeProperty]))
	}
	if want := []string{path + " is /dev/ttyACM5", other + " is /dev/ttyACM9"}; !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
