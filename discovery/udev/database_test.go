package udev

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseRecord(t *testing.T) {
	// An entry of systemd-udevd 252, with lines that a later version might have.
	got := parseRecord(`S:serial/by-path/b
S:serial/by-id/a
S:../../etc/passwd
S:/etc/passwd
L:10
I:1234567
E:ID_MODEL=C920
E:EMPTY=
E:WITH=a=b:c
E:=nothing
G:systemd
G:seat
Q:seat
V:1
X:unknown
no colon
E:LAST=1`)
	want := databaseRecord{
		properties: map[string]string{"ID_MODEL": "C920", "EMPTY": "", "WITH": "a=b:c", "LAST": "1"},
		links:      []string{"/dev/serial/by-id/a", "/dev/serial/by-path/b"}, priority: 10,
		tags: []string{"systemd", "seat"}, currentTags: []string{"seat"},
		initialized: "1234567",
	}
	if got, want := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add("S:a/b\nE:A=b\nG:x\nQ:y\nI:1\nV:1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, link := range parseRecord(text).links {
			if strings.Contains(link+"/", "/../") || !strings.HasPrefix(link, "/dev/") {
				t.Errorf("%q: the link %q leaves /dev", text, link)
			}
		}
	})
}

func TestEnvironment(t *testing.T) {
	m := newMachine(t, "camera.txt")
	device := m.tree().snapshot().device("/devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0/video4linux/video0")
	for name, want := range map[string]string{
		"DEVPATH": device.path, "SUBSYSTEM": "video4linux", "DEVNAME": "/dev/video0", "MAJOR": "81", "TAGS": ":uaccess:seat:",
		"CURRENT_TAGS": ":uaccess:", "ID_V4L_CAPABILITIES": ":capture:", "DRIVER": "", "NOTHING": "",
		"DEVLINKS": "/dev/v4l/by-id/usb-046d_HD_Pro_Webcam_C920_5A2B1C3D-video-index0 /dev/v4l/by-path/pci-0000:00:14.0-usb-0:4:1.0-video-index0",
	} {
		if got, found := device.Env(name); got != want || found != (want != "") {
			t.Errorf("%s is %q, %t; want %q", name, got, found, want)
		}
	}
}
