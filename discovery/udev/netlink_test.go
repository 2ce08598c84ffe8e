package udev

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDevPathsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		message string
		want    []string
	}{
		"a device":     {"add@/devices/a/b\x00ACTION=add\x00DEVPATH=/devices/a/b\x00SEQNUM=1\x00", []string{"/devices/a/b"}},
		"a rename":     {"move@/devices/a/new\x00DEVPATH_OLD=/devices/a/old\x00", []string{"/devices/a/new", "/devices/a/old"}},
		"a module":     {"add@/module/x\x00ACTION=add\x00", nil},
		"a driver":     {"add@/bus/usb/drivers/x\x00ACTION=add\x00", nil},
		"of udevd":     {"libudev\x00\xfe\xed\xca\xfe", nil},
		"upwards":      {"add@/devices/../../etc\x00", nil},
		"not absolute": {"add@devices/a\x00", nil},
		"no end":       {"add@/devices/a", nil},
		"empty":        {"", nil},
		"old upwards":  {"move@/devices/a\x00DEVPATH_OLD=/devices/../x\x00", []string{"/devices/a"}},
	} {
		if got := devPathsOf([]byte(tc.message)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func FuzzDevPathsOf(f *testing.F) {
	f.Add([]byte("move@/devices/a/new\x00DEVPATH_OLD=/devices/a/old\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		for _, devPath := range devPathsOf(message) {
			if !isDevPath(devPath) {
				t.Errorf("%q: %q", message, devPath)
			}
		}
	})
}

// TestOnlyTheKernel checks that messages of processes are ignored.
func TestOnlyTheKernel(t *testing.T) {
	for name, tc := range map[string]struct {
		from unix.Sockaddr
		want bool
	}{
		"the kernel":     {&unix.SockaddrNetlink{}, true},
		"a process":      {&unix.SockaddrNetlink{Pid: 7}, false},
		"another family": {&unix.SockaddrUnix{}, false},
	} {
		if got := isKernel(tc.from); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
