package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestNewSocket checks that each start of the kubelet is noticed once.
func TestNewSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	last, _ := os.Lstat(path)
	for start := range 4 {
		if start > 0 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) // the resolution of file times
		}
		listen(t, path) // often with the same inode
		now, err := os.Lstat(path)
		if err != nil || !isNew(last, now) || isNew(now, now) || isNew(now, nil) {
			t.Errorf("start %d: %v, new: %t; the same: %t; none: %t", start, err, isNew(last, now), isNew(now, now), isNew(now, nil))
		}
		last = now
	}
}

// TestStaleMount checks that the agent ends if a directory that it has mounted was
// deleted on the host, because only a new container gets the new one.
func TestStaleMount(t *testing.T) {
	devicesDir := filepath.Dir(kubeletSocket)
	for _, name := range []string{devicesDir, pluginsDir} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			root, deleted := t.TempDir(), filepath.Join(t.TempDir(), "deleted")
			if err := os.Mkdir(deleted, 0o755); err != nil {
				t.Fatal(err)
			}
			// Like a mount, an open directory outlives its name.
			open, err := os.Open(deleted)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			mounted := os.Symlink(fmt.Sprintf("/proc/self/fd/%d", open.Fd()), filepath.Join(root, name))
			other := map[string]string{devicesDir: pluginsDir, pluginsDir: devicesDir}[name]
			if err := errors.Join(mounted, os.Mkdir(filepath.Join(root, other), 0o755)); err != nil {
				t.Fatal(err)
			}
			r := NewRegistrar(root, slog.New(slog.NewTextHandler(t.Output(), nil)))
			r.interval = 10 * time.Millisecond
			if err := os.Remove(deleted); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if err := r.Run(ctx, func() {}); !errors.Is(err, errStaleMount) {
				t.Errorf("the registrar ended with %v", err)
			}
		})
	}
}

// listen creates a socket.
func listen(t *testing.T, path string) {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	_ = listener.Close()
}
