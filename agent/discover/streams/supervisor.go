package streams

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

// Question is what a Configuration asks.
type Question struct {
	// Handler is the discovery handler's name.
	Handler string
	// Request is what its endpoints are sent. It must not be changed.
	Request *protocol.DiscoverRequest
}

// Supervisor owns the streams of all Configurations. It is safe for concurrent
// use.
type Supervisor struct {
	registry *registry.Registry
	notify   func(types.NamespacedName)
	log      *slog.Logger
	metrics  *Metrics

	// base is the parent of every stream's context.
	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	sites map[types.NamespacedName]*site
}

// site is one Configuration's streams and picture.
type site struct {
	supervisor *Supervisor
	name       types.NamespacedName
	handler    string
	request    *protocol.DiscoverRequest // nil: not asked at present
	view       *View
	streams    map[registry.Endpoint]*stream
}

// NewSupervisor returns a supervisor that calls notify, which must not block,
// with each Configuration whose picture may have changed or whose handler has.
func NewSupervisor(handlers *registry.Registry, notify func(types.NamespacedName), metrics *Metrics, log *slog.Logger) *Supervisor {
	s := &Supervisor{registry: handlers, notify: notify, log: log, metrics: metrics, sites: map[types.NamespacedName]*site{}}
	s.base, s.end = context.WithCancel(context.Background())
	handlers.Subscribe(s.handlerChanged)
	return s
}

// Ask has a Configuration's question asked of every endpoint of its handler,
// those that register later included once Ask is called again. The same
// question changes nothing; another one reopens the streams.
func (s *Supervisor) Ask(configuration types.NamespacedName, question Question) {
	entries := s.registry.Endpoints(question.Handler)
	s.mu.Lock()
	defer s.mu.Unlock()
	site := s.site(configuration, question.Handler)
	if site.request == nil || !proto.Equal(site.request, question.Request) {
		site.request = question.Request
	}
	site.view.Hold(false, time.Now())
	site.sync(entries)
}

// Hold says that a Configuration's question cannot be asked at present. Streams
// that are open stay open with the last one.
func (s *Supervisor) Hold(configuration types.NamespacedName, handler string) {
	entries := s.registry.Endpoints(handler)
	s.mu.Lock()
	defer s.mu.Unlock()
	site := s.site(configuration, handler)
	site.view.Hold(true, time.Now())
	site.sync(entries)
}

// Drop forgets a Configuration.
func (s *Supervisor) Drop(configuration types.NamespacedName) {
	s.mu.Lock()
	dropped := s.sites[configuration]
	delete(s.sites, configuration)
	if dropped != nil {
		for endpoint := range dropped.streams {
			dropped.stop(endpoint)
		}
	}
	s.mu.Unlock()
}

// Look draws the picture of a Configuration's devices.
func (s *Supervisor) Look(configuration types.NamespacedName) Picture {
	s.mu.Lock()
	defer s.mu.Unlock()
	if site := s.sites[configuration]; site != nil {
		return site.view.At(time.Now())
	}
	return Picture{}
}

// Close ends all streams and waits for them. Nothing is asked after it.
func (s *Supervisor) Close() {
	s.end()
	s.running.Wait()
}

// handlerChanged wakes every Configuration that asks a handler.
func (s *Supervisor) handlerChanged(handler string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, site := range s.sites {
		if site.handler != handler {
			continue
		}
		for _, stream := range site.streams {
			stream.poke()
		}
		s.notify(name)
	}
}

// site finds or makes the site of a Configuration; the lock is held.
func (s *Supervisor) site(configuration types.NamespacedName, handler string) *site {
	found := s.sites[configuration]
	if found == nil {
		found = &site{
			supervisor: s, name: configuration, handler: handler,
			view: NewView(DefaultGrace, time.Now()), streams: map[registry.Endpoint]*stream{},
		}
		s.sites[configuration] = found
	}
	if found.handler != handler {
		found.handler, found.request = handler, nil
		for endpoint := range found.streams {
			found.stop(endpoint)
		}
		found.view.AskAnother(time.Now())
	}
	return found
}

// sync opens and closes streams until they are those of the question; the lock
// is held.
func (site *site) sync(entries []registry.Entry) {
	site.view.Expect(entries)
	expected := map[registry.Endpoint]bool{}
	for _, entry := range entries {
		expected[entry.Endpoint] = true
		running := site.streams[entry.Endpoint]
		if site.request == nil || running != nil && running.entry == entry && running.request == site.request {
			continue
		}
		if running != nil {
			site.stop(entry.Endpoint)
			site.view.Reopen(entry.Endpoint)
		}
		site.start(entry)
	}
	for endpoint := range site.streams {
		if !expected[endpoint] {
			site.stop(endpoint)
		}
	}
}

func (site *site) start(entry registry.Entry) {
	ctx, cancel := context.WithCancel(site.supervisor.base)
	started := &stream{
		entry: entry, request: site.request,
		stop: cancel, wake: make(chan struct{}, 1),
	}
	site.streams[entry.Endpoint] = started
	site.supervisor.running.Go(func() {
		defer cancel()
		started.run(ctx, site)
	})
}

// stop ends a stream without waiting: what it still says is not heard.
func (site *site) stop(endpoint registry.Endpoint) {
	site.streams[endpoint].stop()
	delete(site.streams, endpoint)
}

// The site as the listener of its streams.

func (site *site) opened(from *stream) {
	site.supervisor.registry.Opened(from.entry.Endpoint)
	site.hear(from, func() { site.view.Opened(from.entry.Endpoint, from.entry.Shared, time.Now()) })
}

func (site *site) spoke(from *stream, message *protocol.DiscoverResponse) {
	devices, complaint := devicesOf(message, from.entry.Shared)
	site.supervisor.metrics.message(from.entry.Name)
	if complaint != "" {
		site.supervisor.log.Warn("discovery handler sent a faulty list", "configuration", site.name, "endpoint", from.entry.Endpoint, "err", complaint)
	}
	site.hear(from, func() { site.view.Spoke(from.entry.Endpoint, devices, complaint) })
}

func (site *site) broke(from *stream, wasOpen bool, err error) {
	if wasOpen && refused(err) {
		site.supervisor.registry.Closed(from.entry.Endpoint) // it works; the question is wrong
	} else if wasOpen {
		site.supervisor.registry.Broke(from.entry.Endpoint)
	} else {
		site.supervisor.registry.Failed(from.entry.Endpoint)
	}
	site.supervisor.log.Debug("discovery stream ended", "configuration", site.name, "endpoint", from.entry.Endpoint, "err", err)
	site.hear(from, func() {
		if refused(err) {
			site.view.Refused(from.entry.Endpoint, reason(err))
		} else {
			site.view.Broke(from.entry.Endpoint, reason(err), time.Now())
		}
	})
}

func (site *site) closed(from *stream) { site.supervisor.registry.Closed(from.entry.Endpoint) }

// hear takes an event, unless its stream has been replaced meanwhile.
func (site *site) hear(from *stream, event func()) {
	s := site.supervisor
	s.mu.Lock()
	heard := s.sites[site.name] == site && site.streams[from.entry.Endpoint] == from
	if heard {
		event()
	}
	s.mu.Unlock()
	if heard {
		s.notify(site.name)
	}
}
