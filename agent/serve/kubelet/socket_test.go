package kubelet

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const camResource = "akri.sh/cam-1a2b3c"

func TestRemoveSockets(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, pluginsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := socketPath(filepath.Join(dir, pluginsDir), camResource)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, pluginsDir, "other.sock")
	for _, path := range []string{stale, foreign} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
	}
	if err := NewRegistrar(dir, slog.New(slog.DiscardHandler)).Clean(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the stale socket still exists: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("the socket of another plugin is gone: %v", err)
	}
}

func TestSocketPath(t *testing.T) {
	a, err := socketPath("/var/lib/kubelet/"+pluginsDir, strings.Repeat("x", 300))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := socketPath("/var/lib/kubelet/"+pluginsDir, strings.Repeat("x", 300)); a == b {
		t.Error("a name was used twice")
	}
	if _, err := socketPath("/"+strings.Repeat("d", 90), "r"); err == nil {
		t.Error("a path that is too long for a socket address was accepted")
	}
}
