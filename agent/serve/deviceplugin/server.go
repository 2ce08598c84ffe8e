package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/health"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/events"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
)

// Options configure a [Server]. All are required.
type Options struct {
	// NodeName is the node's name in the API server.
	NodeName string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// FieldManager is the field manager that writes slots.
	FieldManager string
	// Client writes Instances and Events. It should have no rate limit.
	Client dynamic.Interface
	// Core is a client of the core API, which reads this node's Pods.
	Core rest.Interface
	// Instances caches this node's Instances. It sends its events to
	// [Server.InstanceEvent].
	Instances *instances.Store
	Log       *slog.Logger
	// Metrics registers the server's metrics.
	Metrics prometheus.Registerer
	// Heartbeat learns when the server's loop works and when it waits; may be nil.
	Heartbeat *health.Loop
	// Accounting is stuck while the kubelet does not show which slots are in use; may be nil.
	Accounting *health.Loop
}

// plugins is where the kubelet finds the device plugins of this node.
type plugins interface {
	// Clean removes what an earlier agent left behind.
	Clean() error
	// Run calls started whenever the kubelet has started, until ctx is done. An error
	// means that the agent must restart to reach the kubelet.
	Run(ctx context.Context, started func()) error
	// Serve serves a resource to the kubelet until ctx is done.
	Serve(ctx context.Context, resource string, server plugin.DevicePluginServer)
}

// Server offers the devices of one node to its kubelet. It is a [device.Sink].
type Server struct {
	options  Options
	executor *claims.Executor
	events   *events.Recorder
	observer *observer.Observer
	plugins  plugins
	metrics  *Metrics
	log      *slog.Logger

	allocations allocations // in progress
	calls       atomic.Uint64

	queue   *queue        // functions that other goroutines post to the loop
	trigger chan struct{} // capacity 1: observe the Pods soon
	stopped chan struct{} // closed when the loop has ended
	running sync.WaitGroup

	// The fields below belong to the loop.
	started   time.Time
	machine   *slots.Machine
	devices   *deviceSet
	resources map[string]*servedResource        // by name
	refused   map[slots.Resource][]slots.Health // another resource has the name
	requests  map[slots.Call]pendingCall
	refusals  *rate.Limiter // that lead to an observation
	noticed   time.Time     // when the reason for the current observation was noticed
	// hidden is what the last observation reported as such.
	hidden map[observer.Hidden]bool
}

var (
	_ device.Sink = (*Server)(nil)
	_ allocator   = (*Server)(nil)
)

// New returns a server that does nothing until Run is called.
func New(o Options) (*Server, error) {
	dir, err := filepath.Abs(o.KubeletDir)
	if err != nil {
		return nil, err
	}
	lister, err := kubelet.NewLister(dir)
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet: %w", err)
	}
	return newServer(o, lister, kubelet.NewRegistrar(dir, o.Log))
}

// newServer returns a server for a kubelet that is listed and served as given.
func newServer(o Options, lister observer.Lister, p plugins) (*Server, error) {
	s := &Server{
		options:   o,
		executor:  claims.New(o.Client, o.Instances, o.FieldManager),
		events:    events.New(o.Client, o.NodeName, o.Log),
		plugins:   p,
		log:       o.Log,
		queue:     newQueue(),
		trigger:   make(chan struct{}, 1),
		stopped:   make(chan struct{}),
		started:   time.Now(),
		machine:   slots.New(o.NodeName),
		devices:   newDevices(),
		resources: map[string]*servedResource{},
		refused:   map[slots.Resource][]slots.Health{},
		requests:  map[slots.Call]pendingCall{},
		refusals:  rate.NewLimiter(maxRefusals, maxRefusals),
	}
	var err error
	if s.metrics, err = NewMetrics(o.Metrics, s.scrape); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s.observer = observer.New(observer.Options{
		Node: o.NodeName, Lister: lister, BeforeList: s.allocations.wait, Client: o.Core, Log: o.Log, Accounting: o.Accounting,
	})
	if err := o.Metrics.Register(s.observer); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return s, nil
}

// Run serves until ctx is done. It returns an error if it cannot remove the sockets
// of an earlier agent, or if the agent must restart to reach the kubelet.
func (s *Server) Run(ctx context.Context) error {
	if err := s.plugins.Clean(); err != nil {
		close(s.stopped)
		return fmt.Errorf("remove the sockets of an earlier agent: %w", err)
	}
	var background sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unreachable error
	background.Go(func() {
		if unreachable = s.plugins.Run(ctx, s.observeSoon); unreachable != nil {
			cancel()
		}
	})
	background.Go(func() { s.observer.Run(ctx) })
	background.Go(func() { s.observe(ctx) })
	background.Go(func() { s.events.Run(ctx) })
	s.loop(ctx)
	close(s.stopped)
	s.stopResources()
	background.Wait()
	s.running.Wait() // each patch has a deadline; the next start reads its outcome
	return unreachable
}

var errStopping = errors.New("the agent is stopping")
