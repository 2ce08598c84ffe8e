package udev

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// udevdVariable names the directory with the programs of udevd. It is set by the tests in
// e2e/handlers/udevoracle, which run this package's tests in namespaces of their own.
const udevdVariable = "AKRI_UDEVD"

// enterNamespaces returns the directory with the programs of udevd.
func enterNamespaces(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(udevdVariable)
	if dir == "" {
		t.Skip("needs namespaces of its own: run go -C e2e test ./handlers/udevoracle")
	}
	return dir
}

// run runs a program.
func run(t testing.TB, program string, arguments ...string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", program, strings.Join(arguments, " "), err, output)
	}
	return strings.TrimSpace(string(output))
}

// addZRAM adds a block device and returns its name.
func addZRAM(t testing.TB) (name string, remove func()) {
	t.Helper()
	number, err := os.ReadFile("/sys/class/zram-control/hot_add") // reading adds one
	if err != nil {
		t.Fatal(err)
	}
	name = "zram" + strings.TrimSpace(string(number))
	remove = func() {
		if _, err := os.Stat("/sys/block/" + name); errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err := os.WriteFile("/sys/class/zram-control/hot_remove", number, 0o200); err != nil {
			t.Errorf("remove %s: %v", name, err)
		}
	}
	t.Cleanup(remove)
	return name, remove
}

func TestBlockDeviceInNamespaces(t *testing.T) {
	enterNamespaces(t)
	before, remove := addZRAM(t)
	h := New(Options{ScanInterval: time.Hour})
	l := discover(t, h, rules(`SUBSYSTEM=="block", KERNEL=="`+before+`|loop77"`)+"properties: {TYPE: 'ENV{DEVTYPE}'}")
	l.want(t, before+" TYPE=disk DEVNODE=/dev/"+before+"\n")
	remove()
	l.want(t, "")

	control, err := unix.Open(loopControl(t), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(control)
	if err := unix.IoctlSetInt(control, unix.LOOP_CTL_ADD, 77); err != nil {
		t.Fatal(err)
	}
	removeLoop := func() { _ = unix.IoctlSetInt(control, unix.LOOP_CTL_REMOVE, 77) } // may be gone
	defer removeLoop()
	l.want(t, "loop77 TYPE=disk DEVNODE=/dev/loop77\n")
	removeLoop()
	l.want(t, "")
}

// loopControl makes the file of the loop driver.
func loopControl(t testing.TB) string {
	t.Helper()
	number, err := os.ReadFile("/sys/class/misc/loop-control/dev")
	if err != nil {
		t.Fatal(err)
	}
	return makeNode(t, unix.S_IFCHR, strings.TrimSpace(string(number)), filepath.Join(t.TempDir(), "loop-control"))
}

// makeNode makes a device file with a number such as "10:237".
func makeNode(t testing.TB, kind uint32, number, file string) string {
	t.Helper()
	first, second, _ := strings.Cut(number, ":")
	major, majorErr := strconv.ParseUint(first, 10, 32)
	minor, minorErr := strconv.ParseUint(second, 10, 32)
	if err := errors.Join(majorErr, minorErr, os.MkdirAll(filepath.Dir(file), 0o755)); err != nil {
		t.Fatal(err)
	}
	err := unix.Mknod(file, kind|0o600, int(unix.Mkdev(uint32(major), uint32(minor))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatalf("%s: %v", file, err)
	}
	return file
}

// TestCharacterDeviceInNamespaces has a device file whose device has parents: that of a
// macvtap interface.
func TestCharacterDeviceInNamespaces(t *testing.T) {
	enterNamespaces(t)
	h := New(Options{ScanInterval: time.Hour})
	single := discover(t, h, rules(`SUBSYSTEM=="macvtap", ATTRS{address}=="02:00:00:00:00:0[1-9]", KERNELS=="tap-*", SUBSYSTEMS=="net"`)+
		"properties: {MAC: 'ATTRS{address}'}")
	grouped := discover(t, h, rules(`SUBSYSTEM=="net", ATTR{address}=="02:00:00:00:00:01"`, `SUBSYSTEM=="macvtap"`)+"groupRecursive: true")
	single.want(t, "")
	grouped.want(t, "")
	run(t, "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "v0").Run() }) // the namespace ends anyway
	run(t, "ip", "link", "add", "link", "v0", "name", "tap-a", "address", "02:00:00:00:00:01", "type", "macvtap")
	index, err := os.ReadFile("/sys/class/net/tap-a/ifindex")
	if err != nil {
		t.Fatal(err)
	}
	tap := "tap" + strings.TrimSpace(string(index))
	single.want(t, tap+" MAC=02:00:00:00:00:01 DEVNODE=/dev/"+tap+"\n")
	grouped.until("tap-a DEVNODE_0=/dev/" + tap + "\n") // at first, the interface has no file
	run(t, "ip", "link", "set", "tap-a", "name", "tap-b")
	grouped.until("tap-b DEVNODE_0=/dev/" + tap + "\n")
	run(t, "ip", "link", "del", "tap-b")
	single.until("")
}
