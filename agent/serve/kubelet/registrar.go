package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// connectTimeout is how long a running kubelet may take to open its stream.
	// Its plugin watcher was observed to take a second on an idle machine.
	connectTimeout = 8 * time.Second
	// registerTimeout is how long the kubelet itself waits when it calls back
	// during a registration.
	registerTimeout = 10 * time.Second
	// checkInterval is how often the kubelet's directories are looked at. Pods that the
	// kubelet admits again 0.9 s after its start need their devices by then.
	checkInterval = 250 * time.Millisecond
)

// registrationPath is how the kubelet learns of the agent's sockets.
type registrationPath int

const (
	// byWatcher means that the kubelet's plugin watcher finds the socket. After a
	// restart the kubelet reconnects within milliseconds.
	byWatcher registrationPath = iota
	// byRegister means that the agent calls the kubelet's registration service,
	// and calls it again whenever its socket is created. The kubelet admits Pods
	// 0.9 s after that.
	byRegister
)

func (p registrationPath) String() string { return [...]string{"plugin watcher", "registration"}[p] }

// Registrar chooses the registration path and detects when the kubelet starts. All
// resources of a node use the same path.
type Registrar struct {
	kubeletDir string
	log        *slog.Logger
	timeout    time.Duration // connectTimeout
	interval   time.Duration // checkInterval

	mu     sync.Mutex
	path   registrationPath
	proven bool          // the kubelet has connected on this path, in the directory as it is
	retry  chan struct{} // closed when another attempt is due
	start  chan struct{} // closed when the kubelet starts
}

// NewRegistrar returns a registrar for the kubelet with the given root directory.
func NewRegistrar(kubeletDir string, log *slog.Logger) *Registrar {
	r := &Registrar{
		kubeletDir: kubeletDir, log: log, timeout: connectTimeout, interval: checkInterval,
		retry: make(chan struct{}), start: make(chan struct{}),
	}
	if info, err := os.Stat(filepath.Join(kubeletDir, pluginsDir)); err != nil || !info.IsDir() {
		r.path = byRegister
	}
	return r
}

// current returns the path, and a channel that is closed when another attempt is
// due: the path has changed or, if the path requires it, the kubelet has started.
func (r *Registrar) current() (registrationPath, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.path, r.retry
}

// nextStart returns a channel that is closed when the kubelet starts.
func (r *Registrar) nextStart() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start
}

// dir returns the directory for the sockets of a path.
func (r *Registrar) dir(path registrationPath) string {
	if path == byWatcher {
		return filepath.Join(r.kubeletDir, pluginsDir)
	}
	return filepath.Join(r.kubeletDir, devicesDir)
}

// connected records that the kubelet connected on a path.
func (r *Registrar) connected(path registrationPath) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if path == r.path && !r.proven {
		r.proven = true
		r.log.Info("The kubelet connected", "path", path.String())
	}
}

// doubt records that the directory of the plugin watcher is gone, or another one. The
// kubelet does not watch a new one before it starts again
// (pkg/kubelet/pluginmanager/pluginwatcher), so it may not find plugins there.
func (r *Registrar) doubt(reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proven {
		r.log.Warn("The kubelet may not find plugins in its plugin directory any more", "dir", r.dir(byWatcher), "err", reason)
	}
	r.proven = false
}

// missed records that a running kubelet did not connect through its plugin
// watcher. Unless it has done so before for some resource, all resources register
// with the kubelet from now on.
func (r *Registrar) missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proven || r.path == byRegister {
		return
	}
	r.path = byRegister
	r.log.Warn("The kubelet does not find plugins in its plugin directory; registering with it instead", "dir", r.dir(byWatcher))
	r.wake()
}

// wake makes another attempt due. The caller holds mu.
func (r *Registrar) wake() {
	close(r.retry)
	r.retry = make(chan struct{})
}

// alive reports whether a kubelet listens on its registration socket.
func (r *Registrar) alive() bool {
	conn, err := net.DialTimeout("unix", filepath.Join(r.kubeletDir, devicesDir, registerSocket), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// register registers a resource that is served on a socket in devicesDir.
func (r *Registrar) register(ctx context.Context, resource, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+filepath.Join(r.kubeletDir, devicesDir, registerSocket),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = deviceplugin.NewRegistrationClient(conn).Register(ctx, &deviceplugin.RegisterRequest{
		Version:      deviceplugin.Version,
		Endpoint:     filepath.Base(socket),
		ResourceName: resource,
		Options:      &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	if err != nil {
		return fmt.Errorf("register %s with the kubelet: %w", resource, err)
	}
	return nil
}

// kubeletStarted records that the kubelet has created its registration socket.
func (r *Registrar) kubeletStarted() {
	r.log.Info("The kubelet started")
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.start)
	r.start = make(chan struct{})
	if r.path == byRegister {
		r.wake()
	}
}
