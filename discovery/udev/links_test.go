package udev

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

const thermal = "/devices/platform/soc/usb2/2-1"

// function is a function of a thermal camera, which has one device file and claims the link
// /dev/thermal/cam.
func function(name, minor, claims string) string {
	return thermal + "/2-1:1." + minor + "/video4linux/" + name + "\n  subsystem class/video4linux\n  MAJOR=81\n  MINOR=" + minor +
		"\n  DEVNAME=" + name + "\n  db S:thermal/cam\n  db S:thermal/" + name + "\n" + claims
}

// thermalCamera is a camera with two functions.
func thermalCamera(first, second string) string {
	return thermal + "\n  subsystem bus/usb\n  MAJOR=189\n  MINOR=130\n  DEVNAME=bus/usb/002/003\n" +
		function("video20", "20", first) + function("video21", "21", second)
}

func TestLinks(t *testing.T) {
	const (
		whole    = "groupRecursive: true\n"
		nodes    = "2-1 DEVNODE_0=/dev/bus/usb/002/003 DEVNODE_1=/dev/video20 DEVNODE_2=/dev/video21"
		toFirst  = nodes + " /dev/thermal/cam->/dev/video20 /dev/thermal/video20->/dev/video20 /dev/thermal/video21->/dev/video21\n"
		toSecond = nodes + " /dev/thermal/video20->/dev/video20 /dev/thermal/cam->/dev/video21 /dev/thermal/video21->/dev/video21\n"
		cam20    = "video20 DEVNODE=/dev/video20 /dev/thermal/cam->/dev/video20 /dev/thermal/video20->/dev/video20\n"
		cam21    = "video21 DEVNODE=/dev/video21 /dev/thermal/cam->/dev/video21 /dev/thermal/video21->/dev/video21\n"
		video20  = "video20 DEVNODE=/dev/video20 /dev/thermal/video20->/dev/video20\n"
		video21  = "video21 DEVNODE=/dev/video21 /dev/thermal/video21->/dev/video21\n"
	)
	const other = "/devices/virtual/v/x\n  subsystem class/v\n  MAJOR=99\n  MINOR=1\n  DEVNAME=x\n  db S:thermal/cam\n  db L:5\n"
	later := func(name string) func(*machine) {
		return func(m *machine) {
			now := time.Now().Add(time.Minute)
			m.must(os.Chtimes(filepath.Join(m.run, "data", name), now, now))
		}
	}
	for name, tc := range map[string]struct {
		text    string
		change  func(*machine)
		details string
		want    string
	}{
		"the first has priority":                   {thermalCamera("  db L:10\n", ""), nil, whole, toFirst},
		"the second has priority":                  {thermalCamera("", "  db L:10\n"), later("c81:20"), whole, toSecond},
		"a negative priority":                      {thermalCamera("", "  db L:-1\n"), nil, whole, toFirst},
		"not a number":                             {thermalCamera("  db L:1\n", "  db L:high\n"), nil, whole, toFirst},
		"equal ones, the first was seen later":     {thermalCamera("", ""), later("c81:20"), whole, toFirst},
		"equal ones, the second was seen later":    {thermalCamera("  db L:3\n", "  db L:3\n"), later("c81:21"), whole, toSecond},
		"two devices, one has priority":            {thermalCamera("", "  db L:1\n"), nil, "", video20 + cam21},
		"two devices with equal ones have both":    {thermalCamera("", ""), nil, "", cam20 + cam21},
		"a device that does not match has none":    {thermalCamera("", "") + other, nil, "", cam20 + cam21},
		"a link like the file of another function": {thermalCamera("  db S:video21\n", ""), later("c81:20"), whole, toFirst},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.plug(tc.text)
			if tc.change != nil {
				tc.change(m)
			}
			rule := rules(`SUBSYSTEM=="video4linux"`)
			if tc.details == whole {
				rule = rules(`SUBSYSTEM=="video4linux|usb"`)
			}
			if got := describe(found(t, m, rule+"symlinks: true\n"+tc.details)); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
		})
	}
}

// TestLinkFollowsItsOwner has a link whose owner vanishes while the handler runs.
func TestLinkFollowsItsOwner(t *testing.T) {
	m := newMachine(t)
	m.plug(thermalCamera("", "  db L:10\n"))
	h := m.handler()
	l := discover(t, h, rules(`SUBSYSTEM=="video4linux"`)+"symlinks: true\n")
	l.want(t, "video20 DEVNODE=/dev/video20 /dev/thermal/video20->/dev/video20\n"+
		"video21 DEVNODE=/dev/video21 /dev/thermal/cam->/dev/video21 /dev/thermal/video21->/dev/video21\n")
	m.unplug(thermal + "/2-1:1.21")
	h.hub.publish(thermal + "/2-1:1.21/video4linux/video21")
	l.want(t, "video20 DEVNODE=/dev/video20 /dev/thermal/cam->/dev/video20 /dev/thermal/video20->/dev/video20\n")
}
