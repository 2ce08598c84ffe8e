package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// errStaleMount means that the host has replaced a directory that is mounted by itself.
// Only a new container gets the new one.
var errStaleMount = errors.New("the directory was deleted on the host, and is still mounted here: " +
	"the agent must restart to reach the new one")

// Run looks at the kubelet's directories until ctx is done, and calls started each time
// the kubelet's registration socket is another one. It returns an error if the agent must
// restart.
func (r *Registrar) Run(ctx context.Context, started func()) error {
	plugins, _ := os.Open(r.dir(byWatcher)) // stays open, so that a new directory does not get its inode
	defer func() { _ = plugins.Close() }()
	socket := filepath.Join(r.dir(byRegister), registerSocket)
	last, _ := os.Lstat(socket)
	tick := time.NewTicker(r.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := checkMount(r.dir(byRegister)); err != nil {
			return err
		}
		now, _ := os.Lstat(socket)
		if isNew(last, now) {
			r.kubeletStarted()
			started()
		}
		last = now
		if used, _ := r.current(); used != byWatcher {
			continue
		}
		if err := checkMount(r.dir(byWatcher)); err != nil {
			return err
		}
		if reason := replaced(plugins, r.dir(byWatcher)); reason != nil {
			r.doubt(reason)
			_ = plugins.Close()
			var err error
			if plugins, err = os.Open(r.dir(byWatcher)); err != nil && r.alive() {
				r.missed()
			}
		}
	}
}

// isNew reports whether a socket is another one than before. It may have the inode of the
// one before, but not its time.
func isNew(before, now fs.FileInfo) bool {
	return now != nil && (before == nil || !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()))
}

// replaced returns why a directory is not the one that was opened, or nil.
func replaced(opened *os.File, path string) error {
	now, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the kubelet's directory is gone: %w", err)
	}
	if before, err := opened.Stat(); err != nil || !os.SameFile(now, before) {
		return errors.New("the directory was replaced")
	}
	return nil
}

// checkMount returns errStaleMount if a directory that exists is deleted on the host.
func checkMount(path string) error {
	dir, err := os.Stat(path)
	if err != nil {
		return nil
	}
	if status, ok := dir.Sys().(*syscall.Stat_t); ok && status.Nlink == 0 {
		return fmt.Errorf("%s: %w", path, errStaleMount)
	}
	return nil
}
