package kubelettest

import (
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Options configure a kubelet.
type Options struct {
	// NoWatcher omits the directory plugins_registry, as a kubelet without a plugin
	// watcher does.
	NoWatcher bool
	// UnwatchedDir creates the directory but does not watch it.
	UnwatchedDir bool
	// NoPodsAPI omits the Pods API, as kubelets before 1.37 do.
	NoPodsAPI bool
	// Warmup is how long after a start the podresources list is empty.
	Warmup time.Duration
}

// Kubelet is a running stub.
type Kubelet struct {
	t       testing.TB
	dir     string
	options Options

	mu       sync.Mutex
	servers  []*grpc.Server
	cancel   context.CancelFunc
	running  sync.WaitGroup
	readyAt  time.Time
	plugins  map[string]*pluginState // by resource
	seen     map[string]bool         // handled sockets in plugins_registry
	pods     map[string]*podState    // by UID; outlives restarts
	order    []string
	watchers map[chan *pods.WatchPodsEvent]bool
	crashes  int
	calls    []string
	changed  chan struct{} // closed at each change of a plugin's list

	// inAdmission serializes admissions.
	inAdmission sync.Mutex
}

// podState is a pod that was admitted or is being admitted.
type podState struct {
	pod       *corev1.Pod
	ids       map[string]map[string][]string // container, resource, ids
	unlisted  bool                           // force-deleted: not in the list, still running
	ended     bool
	responses map[string][]*plugin.ContainerAllocateResponse
}

// Start runs a kubelet with a new root directory until the test ends.
func Start(t testing.TB, options Options) *Kubelet {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubelet{
		t: t, dir: dir, options: options,
		plugins: map[string]*pluginState{}, seen: map[string]bool{}, pods: map[string]*podState{},
		watchers: map[chan *pods.WatchPodsEvent]bool{}, changed: make(chan struct{}),
	}
	dirs := []string{"device-plugins", "pod-resources"}
	if !options.NoWatcher {
		dirs = append(dirs, "plugins_registry")
	}
	if !options.NoPodsAPI {
		dirs = append(dirs, "pods-api")
	}
	for _, name := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	k.start()
	t.Cleanup(func() {
		k.Stop()
		_ = os.RemoveAll(dir)
	})
	return k
}

// Dir returns the kubelet's root directory.
func (k *Kubelet) Dir() string { return k.dir }

// Restart stops the kubelet and starts it again at once.
func (k *Kubelet) Restart() {
	k.Stop()
	k.start()
}

// StartAgain starts a kubelet that was stopped.
func (k *Kubelet) StartAgain() { k.start() }

// Stop stops the kubelet. The containers keep running.
func (k *Kubelet) Stop() {
	k.mu.Lock()
	servers, cancel := k.servers, k.cancel
	k.servers, k.cancel = nil, nil
	for _, p := range k.plugins {
		p.close()
	}
	k.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	for _, s := range servers {
		s.Stop()
	}
	k.running.Wait()
}

func (k *Kubelet) start() {
	// The kubelet removes every socket in the directory, of any plugin.
	_ = filepath.WalkDir(filepath.Join(k.dir, "device-plugins"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSocket != 0 {
			return os.Remove(path)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	k.mu.Lock()
	k.cancel = cancel
	k.readyAt = time.Now().Add(k.options.Warmup)
	k.plugins, k.seen = map[string]*pluginState{}, map[string]bool{}
	k.mu.Unlock()

	k.serve("pod-resources/kubelet.sock", func(s *grpc.Server) { podresources.RegisterPodResourcesListerServer(s, &lister{k: k}) })
	if !k.options.NoPodsAPI {
		k.serve("pods-api/pods-api.sock", func(s *grpc.Server) { pods.RegisterPodsServer(s, &podsAPI{k: k}) })
	}
	k.serve("device-plugins/kubelet.sock", func(s *grpc.Server) { plugin.RegisterRegistrationServer(s, &registration{k: k, ctx: ctx}) })
	if !k.options.NoWatcher && !k.options.UnwatchedDir {
		k.running.Go(func() { k.scan(ctx) })
	}
}

// serve listens on a socket and replaces one from an earlier start.
func (k *Kubelet) serve(socket string, register func(*grpc.Server)) {
	path := filepath.Join(k.dir, socket)
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		k.t.Errorf("kubelet: %v", err)
		return
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	register(server)
	k.mu.Lock()
	k.servers = append(k.servers, server)
	k.mu.Unlock()
	k.running.Go(func() { _ = server.Serve(listener) })
}

// ready reports whether the kubelet knows its pods.
func (k *Kubelet) ready() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !time.Now().Before(k.readyAt)
}

// Crashes returns how often the real kubelet would have crashed.
func (k *Kubelet) Crashes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.crashes
}

// Calls returns the calls to plugins, as "Allocate id id".
func (k *Kubelet) Calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.calls...)
}
