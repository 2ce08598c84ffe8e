package udev

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUdevdInNamespaces follows network interfaces that match only because of tags and
// properties that udevd sets. udevd needs no device file for them.
func TestUdevdInNamespaces(t *testing.T) {
	udevd := enterNamespaces(t)
	const file = "/run/udev/rules.d/10-live.rules"
	write(t, file, `SUBSYSTEM=="net", KERNEL=="live*", TAG+="live", ENV{LIVE}="yes"`+"\n")
	t.Cleanup(func() { os.Remove(file) })
	startUdevd(t, udevd)
	h := New(Options{ScanInterval: time.Hour})
	l := discover(t, h, rules(`SUBSYSTEM=="net", TAG=="live"`)+"properties: {LIVE: 'ENV{LIVE}'}")
	without := discover(t, h, rules(`SUBSYSTEM=="net", KERNEL=="live*", TAG!="live"`))
	l.want(t, "")
	without.want(t, "")
	run(t, "ip", "link", "add", "live0", "type", "veth", "peer", "name", "live1")
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", "live0").Run() }) // the namespace ends anyway
	l.until("live0 LIVE=yes\nlive1 LIVE=yes\n")

	write(t, file, `SUBSYSTEM=="net", KERNEL=="live0", TAG+="live", ENV{LIVE}="changed"`+"\n")
	run(t, filepath.Join(udevd, "bin", "udevadm"), "control", "--reload")
	trigger(t, udevd, []string{"/devices/virtual/net/live0"})
	l.until("live0 LIVE=changed\nlive1 LIVE=yes\n")
	without.Quiet() // the devices were not judged before udevd
	run(t, "ip", "link", "del", "live0")
	l.until("")
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// startUdevd starts udevd and waits until it listens.
func startUdevd(t testing.TB, dir string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	command := exec.CommandContext(ctx, filepath.Join(dir, "bin", "udevadm"))
	command.Args = []string{"systemd-udevd", "--resolve-names=never"}
	var output strings.Builder
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = 5 * time.Second
	_ = os.Remove("/run/udev/control") // of another test
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = command.Wait() // it was killed
		if t.Failed() {
			t.Logf("udevd: %s", output.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat("/run/udev/control"); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("udevd does not start: %s", output.String())
		}
	}
}

// trigger makes udevd look at devices and waits until it has.
func trigger(t testing.TB, udevd string, devPaths []string) {
	t.Helper()
	arguments := []string{"trigger", "--action=change", "--settle"}
	for _, devPath := range devPaths {
		arguments = append(arguments, "/sys"+devPath)
	}
	run(t, filepath.Join(udevd, "bin", "udevadm"), arguments...)
}
