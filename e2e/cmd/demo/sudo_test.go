package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// as calls a function as another user. Only root can.
func as(uid uintptr, run func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine, and no other one has its user
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, errno := unix.RawSyscall(call, uid, uid, uid); errno != 0 {
				result <- errno
				return
			}
		}
		result <- run()
	}()
	return <-result
}

// TestSudo checks that the user who has called sudo can do what the demo prints, and others cannot.
func TestSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	parent, err := os.MkdirTemp("/tmp", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	d := localDemo(filepath.Join(parent, "demo"))
	target := demoTarget{
		kubeconfig: filepath.Join(string(d), "kubeconfig"), availability: filepath.Join(string(d), "node1", "akri", "debug-echo", "file"),
	}
	key := filepath.Join(string(d), "pki", "ca.key")
	if err := os.Mkdir(string(d), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{target.kubeconfig, key, target.availability} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(target.availability); err != nil { // it is created by the command
		t.Fatal(err)
	}
	const user, other = 65534, 65533
	read := func(file string) func() error { return func() error { _, err := os.ReadFile(file); return err } }
	unplug := func() error { return os.WriteFile(target.availability, []byte("OFFLINE"), 0o600) }

	t.Setenv("SUDO_UID", "")
	t.Setenv("SUDO_GID", "")
	if err := d.handOver(target); err != nil {
		t.Fatal(err)
	}
	if err := as(user, read(target.kubeconfig)); !os.IsPermission(err) {
		t.Errorf("without sudo, another user reads the kubeconfig: %v", err)
	}
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	if err := d.handOver(target); err != nil {
		t.Fatal(err)
	}
	if err := as(other, read(target.kubeconfig)); !os.IsPermission(err) {
		t.Errorf("another user reads the kubeconfig: %v", err)
	}
	if err := as(user, read(target.kubeconfig)); err != nil {
		t.Errorf("kubectl --kubeconfig: %v", err)
	}
	for range 2 {
		if err := as(user, unplug); err != nil {
			t.Errorf("unplugging a device: %v", err)
		}
	}
	if err := as(user, read(key)); !os.IsPermission(err) {
		t.Errorf("the user reads the key of the CA: %v", err)
	}
}

// TestCommandsForTheCallerOfSudo checks that what only root can do is printed with sudo, and with the PATH of the user.
func TestCommandsForTheCallerOfSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs by sudo")
	}
	for uid, want := range map[string]string{
		"":     "make demo-down DIR=/tmp/other",
		"0":    "make demo-down DIR=/tmp/other",
		"1000": `sudo env "PATH=$PATH" make demo-down DIR=/tmp/other`,
	} {
		t.Setenv("SUDO_UID", uid)
		t.Setenv("SUDO_GID", uid)
		if got := localDemo("/tmp/other").makeTarget("demo-down"); got != want {
			t.Errorf("SUDO_UID=%s\n got %s\nwant %s", uid, got, want)
		}
	}
}

// TestBuildsOfAPrivateUser checks that what the demo builds can be run by the user who has called sudo, even if sudo has
// a umask with which only root could.
func TestBuildsOfAPrivateUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs by sudo")
	}
	defer syscall.Umask(syscall.Umask(0o077))
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	shareBuilds()
	file := filepath.Join(t.TempDir(), "program")
	if err := exec.CommandContext(t.Context(), "mkdir", file).Run(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v, %v, want 0755", info.Mode(), err)
	}
}
