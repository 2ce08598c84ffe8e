package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"akri.sh/akri/internal/backoff"
)

// errStaleMount means that the host has replaced a directory that is mounted by itself.
// Only a new container gets the new one.
var errStaleMount = errors.New("the directory was deleted on the host, and is still mounted here: " +
	"the agent must restart to reach the new one")

// Run looks at the kubelet's directories until ctx is done, and calls started each time
// the kubelet's own socket is another one. It returns an error if the agent must restart.
func (r *Registrar) Run(ctx context.Context, started func()) error {
	socket := filepath.Join(r.kubeletDir, kubeletSocket)
	last, _ := os.Lstat(socket)
	for backoff.Sleep(ctx, r.interval) {
		for _, dir := range []string{filepath.Dir(socket), filepath.Join(r.kubeletDir, pluginsDir)} {
			if err := checkMount(dir); err != nil {
				return err
			}
		}
		now, _ := os.Lstat(socket)
		if isNew(last, now) {
			r.kubeletStarted()
			started()
		}
		last = now
	}
	return nil
}

// isNew reports whether a socket is another one than before. It may have the inode of the
// one before, but not its time.
func isNew(before, now fs.FileInfo) bool {
	return now != nil && (before == nil || !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime()))
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
