package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Namespaces are the clone flags for the namespaces of a supervisor and of each node.
const Namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// Detach separates the mount namespace from the one it was copied from, and mounts the
// /proc of the PID namespace. Mounts propagate within the namespace, as Kubernetes'
// bidirectional volumes need, but never out of it.
func Detach() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts within the namespace: %w", err)
	}
	return mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// Tmpfs mounts an empty in-memory file system on dir.
func Tmpfs(dir string, mode os.FileMode) error {
	return mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("mode=%o", mode))
}

// Bind mounts source at target as well.
func Bind(source, target string) error { return mount(source, target, "", unix.MS_BIND, "") }

// Overlay redirects writes in dir to scratch, which must not itself be on an overlay.
func Overlay(dir, scratch string) error {
	upper, work := filepath.Join(scratch, "upper"), filepath.Join(scratch, "work")
	for _, d := range []string{upper, work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	return mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work))
}

// OnOverlay reports whether dir is on an overlay, which cannot hold the layers of
// another overlay.
func OnOverlay(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// FakeSettings mounts files with the given contents over kernel settings below
// /proc/sys. Programs then find the values they require, and the machine keeps its own.
func FakeSettings(scratch string, settings map[string]string) error {
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	for name, value := range settings {
		target := filepath.Join("/proc/sys", name)
		if _, err := os.Stat(target); err != nil {
			continue // the kernel lacks this setting
		}
		file := filepath.Join(scratch, filepath.Base(name))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := Bind(file, target); err != nil {
			return err
		}
	}
	return nil
}

func mount(source, target, fstype string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, fstype, flags, data); err != nil {
		if fstype == "" {
			fstype = "bind of " + source
		}
		return fmt.Errorf("mounting %s on %s: %w", fstype, target, err)
	}
	return nil
}
