package udevoracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/clustertest"
)

// setup gives the tests a sysfs of their own network namespace, and empty /run and /dev,
// so that udevd finds and changes nothing of the machine.
const setup = `
set -e
mount --make-rprivate /
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /dev
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/urandom c 1 9
for rules in /usr/lib/udev/rules.d /etc/udev/rules.d; do
  if [ -d $rules ]; then mount -t tmpfs tmpfs $rules; fi
done
exec "$@"
`

// TestInNamespaces runs the tests of discovery/udev that need namespaces.
func TestInNamespaces(t *testing.T) {
	clustertest.Full(t)
	if os.Getuid() != 0 || exec.Command("unshare", "--net", "--mount", "--pid", "--fork", "true").Run() != nil {
		const text = "namespaces cannot be created: run as root"
		if os.Getenv("AKRI_E2E_REQUIRED") == "1" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	udevd := peers.Debian(t, "udev", "libudev1")
	program := filepath.Join(t.TempDir(), "udev.test")
	compile := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-c", "-o", program, "./discovery/udev")
	compile.Dir = root
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	command := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", setup, "sh", program, "-test.run=InNamespaces", "-test.v", "-test.timeout=5m")
	command.Dir = filepath.Join(root, "discovery", "udev")
	command.Env = append(append(os.Environ(), "AKRI_UDEVD="+udevd), peers.Libraries(udevd)...)
	command.WaitDelay = 10 * time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if passed := strings.Count(string(output), "\n--- PASS: "); passed < 4 || strings.Contains(string(output), "--- SKIP") {
		t.Fatalf("%d tests passed, want at least 4\n%s", passed, output)
	}
	t.Logf("\n%s", output)
}
