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

// watched runs a registrar for a directory, and returns a channel that receives each
// start of the kubelet.
func watched(t *testing.T, dir string, interval time.Duration) (starts <-chan struct{}, result <-chan error) {
	t.Helper()
	r := NewRegistrar(dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
	r.interval = interval
	ctx, cancel := context.WithCancel(context.Background())
	started, ended, stopped := make(chan struct{}, 100), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		ended <- r.Run(ctx, func() { started <- struct{}{} })
	}()
	t.Cleanup(func() {
		cancel()
		<-stopped
	})
	return started, ended
}

// TestNewSocket checks that a new socket is recognized without an event: the queue of
// events overflows on a busy machine.
func TestNewSocket(t *testing.T) {
	count := 0
	w := &socketWatch{dir: t.TempDir(), started: func() { count++ }}
	listen(t, w.path())
	w.socket, _ = os.Lstat(w.path())
	if w.compare(); count != 0 {
		t.Error("the same socket is no start of the kubelet")
	}
	for want := 1; want <= 3; want++ {
		if err := os.Remove(w.path()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the resolution of file times
		listen(t, w.path())               // often with the same inode
		if w.compare(); count != want {
			t.Errorf("%d starts noticed, want %d", count, want)
		}
	}
}

// TestChecks checks that the directory is compared with the watched one regularly.
func TestChecks(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, devicesDir)
	for _, d := range []string{dir, filepath.Join(root, "next")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Through a link, the replacement causes no event.
	link := filepath.Join(root, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	listen(t, filepath.Join(dir, registerSocket))
	w := &socketWatch{dir: link, interval: 10 * time.Millisecond, started: func() { // once the watch has begun
		if err := errors.Join(os.Remove(link), os.Symlink(filepath.Join(root, "next"), link)); err != nil {
			t.Error(err)
		}
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := w.run(ctx); !errors.Is(err, errReplaced) {
		t.Errorf("the watch ended with %v", err)
	}
}

// TestStaleMount checks that the agent ends if a directory that it has mounted was
// deleted on the host, because only a new container gets the new one.
func TestStaleMount(t *testing.T) {
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
			_, result := watched(t, root, 10*time.Millisecond)
			if err := os.Remove(deleted); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-result:
				if !errors.Is(err, errStaleMount) {
					t.Errorf("the registrar ended with %v", err)
				}
			case <-time.After(5 * time.Second):
				t.Error("the deleted directory was not noticed")
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
