package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// Options configure a [Server]. All are required.
type Options struct {
	// NodeName is the node's name in the API server.
	NodeName string
	// KubeletDir is the kubelet's root directory.
	KubeletDir string
	// FieldManager is the field manager that writes slots.
	FieldManager string
	// Client writes Instances and, without the kubelet's Pods API, reads this
	// node's pods. It should have no rate limit.
	Client dynamic.Interface
	// Instances caches this node's Instances. The server adds a handler to it.
	Instances *instances.Store
	Log       *slog.Logger
	// Metrics registers the server's metrics.
	Metrics prometheus.Registerer
}

// Server offers the devices of one node to its kubelet. It is a [device.Sink].
type Server struct {
	options   Options
	executor  *claims.Executor
	observer  *observer.Observer
	registrar *kubelet.Registrar
	metrics   *Metrics
	log       *slog.Logger

	queue   *queue        // functions that other goroutines post to the loop
	trigger chan struct{} // capacity 1: observe the pods soon
	stopped chan struct{} // closed when the loop has ended
	running sync.WaitGroup

	// The fields below belong to the loop.
	started   time.Time
	machine   *slots.Machine
	devices   *devices
	resources map[string]*resource
	nextCall  slots.Call
	answers   map[slots.Call]chan<- answer
}

var _ device.Sink = (*Server)(nil)

// resource is the service of one Instance, with a function that stops it.
type resource struct {
	*service
	stop func()
}

// answer ends a call of the kubelet.
type answer struct {
	slots []int
	err   error
}

// New returns a server that does nothing until Run is called. Call New before the
// watch of the Instances starts.
func New(o Options) (*Server, error) {
	dir, err := filepath.Abs(o.KubeletDir)
	if err != nil {
		return nil, err
	}
	o.KubeletDir = dir
	metrics, err := NewMetrics(o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	w, err := observer.New(dir, o.NodeName, o.Client, o.Log)
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet: %w", err)
	}
	s := &Server{
		options:   o,
		executor:  claims.New(o.Client, o.Instances, o.NodeName, o.FieldManager),
		observer:  w,
		registrar: kubelet.NewRegistrar(dir, o.Log),
		metrics:   metrics,
		log:       o.Log,
		queue:     newQueue(),
		trigger:   make(chan struct{}, 1),
		stopped:   make(chan struct{}),
		started:   time.Now(),
		machine:   slots.New(o.NodeName),
		devices:   newDevices(),
		resources: map[string]*resource{},
		answers:   map[slots.Call]chan<- answer{},
	}
	o.Instances.Handle(s.instanceEvents())
	return s, nil
}

// Run serves until ctx is done. It returns an error if it cannot remove the sockets
// of an earlier agent.
func (s *Server) Run(ctx context.Context) error {
	if err := kubelet.RemoveSockets(s.options.KubeletDir); err != nil {
		close(s.stopped)
		return fmt.Errorf("remove the sockets of an earlier agent: %w", err)
	}
	var background sync.WaitGroup
	background.Go(func() { s.registrar.Run(ctx, s.observeSoon) })
	background.Go(func() { _ = s.observer.Run(ctx) }) // returns only when ctx is done
	background.Go(func() { s.observe(ctx) })
	s.loop(ctx)
	close(s.stopped)
	s.stopResources()
	background.Wait()
	s.running.Wait() // each patch has a deadline; the next start reads its outcome
	return nil
}

// stopResources sends the last lists and stops serving. Running containers are not
// affected.
func (s *Server) stopResources() {
	var all sync.WaitGroup
	for _, r := range s.resources {
		all.Go(func() {
			r.sendUnhealthy()
			r.stop()
		})
	}
	all.Wait()
}

var errStopping = errors.New("the agent is stopping")

// resource returns the service of an Instance, and starts it if necessary.
func (s *Server) resource(instance string) *resource {
	if r := s.resources[instance]; r != nil {
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &resource{service: newService(instance, s)}
	name := v0.ResourceName(instance)
	plugin := kubelet.Plugin{Resource: name, Server: r.service, Registrar: s.registrar, Log: s.log.With("resource", name)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		plugin.Run(ctx)
	}()
	r.stop = func() {
		cancel()
		<-done
	}
	if d, found := s.devices.get(instance); found {
		r.setDevice(d)
	}
	s.resources[instance] = r
	return r
}

// withdraw stops a resource. A later resource of the same name has another socket
// and need not wait for it.
func (s *Server) withdraw(instance string) {
	if r := s.resources[instance]; r != nil {
		delete(s.resources, instance)
		s.running.Go(r.stop)
	}
}

// patch sends a claim or a release in the background and passes its result to
// settled, on the loop.
func (s *Server) patch(instance string, p patch) {
	name := s.devices.nameOf(instance)
	s.running.Go(func() {
		result := p.send(context.Background(), name, p.slots) // has its own deadline; completes during shutdown
		p.counter.WithLabelValues(outcomes[result.Outcome]).Inc()
		if result.Outcome != slots.Written {
			s.log.Warn("Could not write the slots", "instance", name, "slots", p.slots, "outcome", outcomes[result.Outcome], "err", result.Err)
		}
		s.queue.post(func() { s.step(p.settled(result)) })
	})
}

// patch is a claim or a release to send.
type patch struct {
	slots   []int
	send    func(context.Context, types.NamespacedName, []int) claims.Result
	counter *prometheus.CounterVec
	settled func(claims.Result) slots.Event
}
