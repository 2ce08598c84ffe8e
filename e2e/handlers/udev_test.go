package handlers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/image"
)

// zram is a block device of the kernel, in memory. All nodes see it, as they share the
// machine's kernel.
type zram struct {
	t      testing.TB
	number string
}

// addZRAM adds a device.
func addZRAM(t testing.TB) *zram {
	t.Helper()
	number, err := os.ReadFile("/sys/class/zram-control/hot_add") // reading adds one
	if err != nil {
		text := fmt.Sprintf("no block device can be added: %v: run as root on a kernel with zram", err)
		if os.Getenv("AKRI_E2E_REQUIRED") == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	z := &zram{t: t, number: strings.TrimSpace(string(number))}
	t.Cleanup(z.remove)
	return z
}

func (z *zram) node() string { return "/dev/zram" + z.number }

func (z *zram) devPath() string { return "/devices/virtual/block/zram" + z.number }

// resize gives the device a size in bytes. Before, it cannot be read.
func (z *zram) resize(size string) {
	z.t.Helper()
	if err := os.WriteFile(filepath.Join("/sys", z.devPath(), "disksize"), []byte(size), 0o200); err != nil {
		z.t.Fatal(err)
	}
}

// remove removes the device. It waits for programs that have it open.
func (z *zram) remove() {
	z.t.Helper()
	var err error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, missing := os.Stat(filepath.Join("/sys", z.devPath())); errors.Is(missing, fs.ErrNotExist) {
			return
		}
		if err = os.WriteFile("/sys/class/zram-control/hot_remove", []byte(z.number), 0o200); err == nil {
			return
		}
	}
	z.t.Errorf("%s cannot be removed: %v", z.node(), err)
}

// loadShell makes Debian's busybox available to Pods as an image.
func (w *world) loadShell() (reference string) {
	w.t.Helper()
	const name = "akri.local/busybox:1"
	program := filepath.Join(peers.Debian(w.t, "busybox-static"), "bin", "busybox")
	archive := filepath.Join(w.t.TempDir(), "busybox.tar")
	err := image.Write(archive, image.Image{
		Name: name, Files: map[string]string{"/bin/busybox": program}, Entrypoint: []string{"/bin/busybox"},
	})
	if err == nil {
		err = w.Load(w.ctx, archive)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return name
}

// TestUdevDevice follows a device from its appearance to the container that uses its
// device file, and to its removal.
func TestUdevDevice(t *testing.T) {
	w := newWorld(t, "udev")
	shell := w.loadShell()
	device := addZRAM(t)
	device.resize("1048576")
	w.apply(fmt.Sprintf(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: disk}
spec:
  discoveryHandler:
    name: udev
    discoveryDetails: |
      udevRules:
      - 'SUBSYSTEM=="block", KERNEL=="zram%s", ENV{DEVTYPE}=="disk"'
      permissions: rw
      properties: {SIZE: "ATTR{size}"}
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata: {name: "{{ INSTANCE_NAME }}"}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: broker
        image: %s
        args:
        - sh
        - -c
        - |
          bb=/bin/busybox
          echo "$UDEV_DEVNODE of $UDEV_DEVPATH, $SIZE sectors"
          printf 'written by the broker' | $bb dd of=$UDEV_DEVNODE bs=4096 conv=sync &&
          $bb dd if=$UDEV_DEVNODE bs=21 count=1 && echo && exec $bb sleep 1000
        resources:
          limits: {"{{ RESOURCE_NAME }}": "1"}
`, device.number, shell))
	instances := w.await("UDEV_DEVNODE", device.node(), device.node())
	var nodes []string
	for name, i := range instances {
		if got := i.Spec.BrokerProperties["UDEV_DEVPATH"]; got != device.devPath() {
			t.Errorf("UDEV_DEVPATH is %q, want %q", got, device.devPath())
		}
		nodes = append(nodes, i.Spec.Nodes...)
		w.eventually("the broker has used the device", func() string {
			log, _ := w.Kubectl(w.ctx, "--namespace", w.namespace, "logs", name)
			for _, want := range []string{device.node() + " of " + device.devPath() + ", 2048 sectors", "\nwritten by the broker\n"} {
				if !strings.Contains(string(log), want) {
					return fmt.Sprintf("%q is not in its log:\n%s", want, log)
				}
			}
			return ""
		})
	}
	slices.Sort(nodes)
	if want := []string{"node1", "node2"}; !slices.Equal(nodes, want) {
		t.Errorf("the Instances are on %v, want one for each of %v: a device belongs to one node", nodes, want)
	}

	device.remove()
	w.await("UDEV_DEVNODE")
	w.eventually("the brokers are gone", func() string { return w.kubectl("get", "pods", "--output=name") })
}

// TestUdevMistake checks that the author learns where a rule is wrong.
func TestUdevMistake(t *testing.T) {
	w := newWorld(t, "udev")
	_, err := w.KubectlInput(w.ctx, []byte(`
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: mistake}
spec:
  discoveryHandler:
    name: udev
    discoveryDetails: |
      udevRules:
      - 'KERNEL=="video[0-9]*"'
      - 'SUBSYSTEM=="tty", ATRS{idVendor}=="10c4"'
`), "--namespace", w.namespace, "apply", "--server-side", "-f", "-")
	const want = `udevRules[1]: column 19: unknown field "ATRS"; did you mean`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
