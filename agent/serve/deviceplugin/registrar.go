package deviceplugin

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// registerTimeout is the kubelet's own patience when it calls back during a
	// registration.
	registerTimeout = 10 * time.Second
	// rewatchAfter is how long to wait for the kubelet's folder to be there.
	rewatchAfter = 10 * time.Second
)

// road is a way by which the kubelet finds our sockets.
type road int

const (
	// byWatcher: the kubelet's plugin watcher finds the socket. After a restart
	// the kubelet connects again within milliseconds, without our doing.
	byWatcher road = iota
	// byRegister: we call the kubelet's registration service, again each time its
	// socket is made. It admits pods 0.9 s after that.
	byRegister
)

func (r road) String() string { return [...]string{"plugin watcher", "registration"}[r] }

// registrar knows which road is taken and when the kubelet has started. All
// resources of a node take the same road.
type registrar struct {
	kubeletDir string
	log        *slog.Logger
	patience   time.Duration // connectWait

	mu      sync.Mutex
	road    road
	proven  bool          // the kubelet has come by the road
	started chan struct{} // closed when the kubelet starts or the road changes
}

func newRegistrar(kubeletDir string, log *slog.Logger) *registrar {
	r := &registrar{kubeletDir: kubeletDir, log: log, patience: connectWait, started: make(chan struct{})}
	if info, err := os.Stat(filepath.Join(kubeletDir, pluginsDir)); err != nil || !info.IsDir() {
		r.road = byRegister
	}
	return r
}

// current returns the road, and a channel that is closed when a new attempt is
// due: the road has changed or, if it needs that, the kubelet has started.
func (r *registrar) current() (road, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.road, r.started
}

// dir is the folder for the sockets of a road.
func (r *registrar) dir(way road) string {
	if way == byWatcher {
		return filepath.Join(r.kubeletDir, pluginsDir)
	}
	return filepath.Join(r.kubeletDir, devicesDir)
}

// connected notes that the kubelet came by a road.
func (r *registrar) connected(way road) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if way == r.road && !r.proven {
		r.proven = true
		r.log.Info("the kubelet connects", "road", way.String())
	}
}

// missed says that a running kubelet did not come by the plugin watcher. Unless it
// once did for some resource, all take the other road from now on.
func (r *registrar) missed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proven || r.road == byRegister {
		return
	}
	r.road = byRegister
	r.log.Warn("the kubelet does not look for plugins in its folder; registering with it instead", "folder", r.dir(byWatcher))
	r.wake()
}

func (r *registrar) wake() {
	close(r.started)
	r.started = make(chan struct{})
}

// alive tells whether a kubelet listens on its registration socket.
func (r *registrar) alive() bool {
	conn, err := net.DialTimeout("unix", filepath.Join(r.kubeletDir, devicesDir, registerSocket), time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// register tells the kubelet of a resource served on a socket in devicesDir.
func (r *registrar) register(ctx context.Context, resource, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+filepath.Join(r.kubeletDir, devicesDir, registerSocket),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = plugin.NewRegistrationClient(conn).Register(ctx, &plugin.RegisterRequest{
		Version:      plugin.Version,
		Endpoint:     filepath.Base(socket),
		ResourceName: resource,
		Options:      &plugin.DevicePluginOptions{GetPreferredAllocationAvailable: true},
	})
	if err != nil {
		return fmt.Errorf("register %s with the kubelet: %w", resource, err)
	}
	return nil
}

// run watches for the kubelet's socket until ctx ends, and calls started each
// time it is made anew.
func (r *registrar) run(ctx context.Context, started func()) {
	for ctx.Err() == nil {
		if err := r.watch(ctx, started); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot watch for the kubelet's socket", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(rewatchAfter):
		}
	}
}

func (r *registrar) watch(ctx context.Context, started func()) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer watcher.Close()
	dir := filepath.Join(r.kubeletDir, devicesDir)
	if err := watcher.Add(dir); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-watcher.Errors:
			return err
		case event, open := <-watcher.Events:
			switch {
			case !open:
				return nil
			case event.Name == dir: // the folder itself went
				return fmt.Errorf("folder %s: %s", dir, event.Op)
			case filepath.Base(event.Name) == registerSocket && event.Has(fsnotify.Create):
				r.log.Info("the kubelet has started")
				r.kubeletStarted()
				started()
			}
		}
	}
}

func (r *registrar) kubeletStarted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.road == byRegister {
		r.wake()
	}
}
