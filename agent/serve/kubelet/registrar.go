package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// connectTimeout is how long a running kubelet may take to open its stream.
	// Its plugin watcher was observed to take a second on an idle machine.
	connectTimeout = 8 * time.Second
	// checkInterval is how often the kubelet's directories are looked at.
	checkInterval = 250 * time.Millisecond
)

// Registrar puts the sockets of a node's resources where the plugin watcher of its kubelet
// finds them, which reconnects within milliseconds when the kubelet restarts. It detects when
// that starts.
type Registrar struct {
	kubeletDir string
	log        *slog.Logger
	timeout    time.Duration // connectTimeout
	interval   time.Duration // checkInterval

	mu    sync.Mutex
	start chan struct{} // closed when the kubelet starts
}

// NewRegistrar returns a registrar for the kubelet with the given root directory.
func NewRegistrar(kubeletDir string, log *slog.Logger) *Registrar {
	return &Registrar{
		kubeletDir: kubeletDir, log: log, timeout: connectTimeout, interval: checkInterval, start: make(chan struct{}),
	}
}

// Clean removes the sockets that an earlier agent of this node left behind.
func (r *Registrar) Clean() error {
	paths, err := filepath.Glob(filepath.Join(r.kubeletDir, pluginsDir, socketPrefix+"*"+socketSuffix))
	errs := []error{err}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSocket == 0 {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// nextStart returns a channel that is closed when the kubelet starts.
func (r *Registrar) nextStart() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start
}

// kubeletStarted records that the kubelet has created its own socket.
func (r *Registrar) kubeletStarted() {
	r.log.Info("The kubelet started")
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.start)
	r.start = make(chan struct{})
}

// alive reports whether a kubelet listens on its own socket.
func (r *Registrar) alive() bool {
	conn, err := net.DialTimeout("unix", filepath.Join(r.kubeletDir, kubeletSocket), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// notFound returns the error about a running kubelet that did not connect to a socket.
func (r *Registrar) notFound() error {
	return fmt.Errorf("the kubelet did not connect within %s: if its directory %s was deleted and created again, restart the kubelet, "+
		"which still watches the deleted one; if the node has no inotify watches left, "+
		"raise fs.inotify.max_user_instances and fs.inotify.max_user_watches, and then restart the kubelet",
		r.timeout, filepath.Join(r.kubeletDir, pluginsDir))
}
