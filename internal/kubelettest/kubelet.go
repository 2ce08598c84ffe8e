package kubelettest

import (
	"context"
	"errors"
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
)

// Options configure a kubelet.
type Options struct {
	// ScanDelay is how long after a start the plugin watcher looks for sockets.
	ScanDelay time.Duration
	// Warmup is how long after a start the podresources list is empty.
	Warmup time.Duration
	// MayCrash means that the test expects [Kubelet.Crashes]. Otherwise they fail it.
	MayCrash bool
}

// Kubelet is a running stub.
type Kubelet struct {
	t       testing.TB // nil without a test
	errorf  func(format string, arguments ...any)
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
	crashes  int
	inCall   int // Allocate calls in progress
	overlaps int
	calls    []string
	dead     map[string]bool // socket names whose registration can never succeed
	changed  chan struct{}   // closed at each change of a plugin's list
	listErr  func(context.Context) error
	list     *podresources.ListPodResourcesResponse // instead of the Pods
	api      *apiServer                             // nil without one

	// inAdmission serializes admissions.
	inAdmission sync.Mutex
	// bookkeeping is write-locked while the sync loop is stalled.
	bookkeeping sync.RWMutex
}

// podState is a Pod that was admitted or is being admitted.
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
	k, err := New(options, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	k.t = t
	t.Cleanup(func() {
		k.Close()
		if crashes := k.Crashes(); crashes > 0 && !options.MayCrash {
			t.Errorf("the kubelet would have crashed %d times: an id left the list while a call named it", crashes)
		}
	})
	return k
}

// New is [Start] for a program, which closes the kubelet. It reports later errors to a
// function. [Kubelet.Await] needs a test.
func New(options Options, errorf func(format string, arguments ...any)) (*Kubelet, error) {
	dir, err := os.MkdirTemp("", "kubelet") // short: socket paths are limited
	if err != nil {
		return nil, err
	}
	k := &Kubelet{
		errorf: errorf, dir: dir, options: options,
		plugins: map[string]*pluginState{}, seen: map[string]bool{}, pods: map[string]*podState{},
		changed: make(chan struct{}),
	}
	for _, name := range []string{"device-plugins", "pod-resources", "plugins_registry"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	k.start()
	return k, nil
}

// Close stops the kubelet, and removes its root directory and its Pods.
func (k *Kubelet) Close() {
	k.Stop()
	k.leave()
	_ = os.RemoveAll(k.dir)
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
	k.plugins, k.seen, k.dead = map[string]*pluginState{}, map[string]bool{}, map[string]bool{}
	k.mu.Unlock()

	k.serve("pod-resources/kubelet.sock", func(s *grpc.Server) { podresources.RegisterPodResourcesListerServer(s, &lister{k: k}) })
	k.serve("device-plugins/kubelet.sock", func(*grpc.Server) {}) // of the other way to register, which Akri does not use
	k.running.Go(func() { k.scan(ctx) })
}

// serve listens on a socket and replaces one from an earlier start.
func (k *Kubelet) serve(socket string, register func(*grpc.Server)) {
	path := filepath.Join(k.dir, socket)
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		k.errorf("kubelet: %v", err)
		return
	}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	register(server)
	k.mu.Lock()
	k.servers = append(k.servers, server)
	k.mu.Unlock()
	k.running.Go(func() { _ = server.Serve(listener) })
}

// ready reports whether the kubelet knows its Pods.
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

// Overlaps returns how many lists were requested while an Allocate was in progress. The
// kubelet may then give the device of that Allocate to a second container
// (https://github.com/kubernetes/kubernetes/pull/137534).
func (k *Kubelet) Overlaps() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.overlaps
}

// Calls returns the calls to plugins, as "Allocate id id".
func (k *Kubelet) Calls() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.calls...)
}
