package streams

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery/protocol"
)

// Supervisor owns the streams of all Configurations. It is safe for concurrent
// use.
type Supervisor struct {
	registry  *registry.Registry
	permitted hostpaths.Policy
	notify    func(types.NamespacedName)
	log       *slog.Logger
	metrics   *Metrics

	// base is the parent of every stream's context.
	base    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu          sync.Mutex
	discoveries map[types.NamespacedName]*discovery
}

// discovery holds the streams and the view of one Configuration. It is the
// [streamListener] of the streams.
type discovery struct {
	supervisor *Supervisor
	name       types.NamespacedName
	handler    string
	request    *protocol.DiscoverRequest // nil before the first
	view       *view
	streams    map[registry.Endpoint]*stream
}

// NewSupervisor returns a supervisor that calls notify, which must not block, with
// each Configuration whose snapshot or whose handler's endpoints may have changed.
// Devices that need what is not permitted are refused.
func NewSupervisor(
	handlers *registry.Registry, permitted hostpaths.Policy, notify func(types.NamespacedName), metrics *Metrics, log *slog.Logger,
) *Supervisor {
	s := &Supervisor{
		registry: handlers, permitted: permitted, notify: notify, log: log, metrics: metrics,
		discoveries: map[types.NamespacedName]*discovery{},
	}
	s.base, s.end = context.WithCancel(context.Background())
	handlers.Subscribe(s.handlerChanged)
	return s
}

// Discover sends a Configuration's request, which the caller must not modify afterwards, to
// every endpoint of its handler. Endpoints that register later get it with the next call. An
// equal request is a no-op; a different one reopens the streams. A nil request is incomplete
// for now: open streams continue with the previous one.
func (s *Supervisor) Discover(configuration types.NamespacedName, handler string, request *protocol.DiscoverRequest) {
	entries := s.registry.Endpoints(handler)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.discovery(configuration, handler)
	if request != nil && (d.request == nil || !proto.Equal(d.request, request)) {
		d.request = request
	}
	d.view.Hold(request == nil, time.Now())
	d.sync(entries)
}

// Served reports whether a Configuration's handler has endpoints on this node. If it
// has none, no request is sent until Discover is called again; notify is called when
// an endpoint registers. From now on, the Configuration's devices are kept for the grace
// period; zero stands for the default.
func (s *Supervisor) Served(configuration types.NamespacedName, handler string, gracePeriod time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.discovery(configuration, handler) // first, so that no registration is missed
	d.view.grace = gracePeriod
	if len(s.registry.Endpoints(handler)) > 0 {
		return true
	}
	d.request = nil
	d.view.Hold(false, time.Now())
	d.sync(nil)
	return false
}

// Drop forgets a Configuration.
func (s *Supervisor) Drop(configuration types.NamespacedName) {
	s.mu.Lock()
	dropped := s.discoveries[configuration]
	delete(s.discoveries, configuration)
	if dropped != nil {
		for endpoint := range dropped.streams {
			dropped.stop(endpoint)
		}
	}
	s.mu.Unlock()
}

// Snapshot returns the snapshot of a Configuration's devices.
func (s *Supervisor) Snapshot(configuration types.NamespacedName) Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.discoveries[configuration]; d != nil {
		return d.view.At(time.Now())
	}
	return Snapshot{}
}

// Close closes all streams and waits for them. No stream is opened afterwards.
func (s *Supervisor) Close() {
	s.end()
	s.running.Wait()
}

// handlerChanged has the streams of an endpoint that registered tried again. It notifies
// every Configuration that uses the handler, unless the endpoint was known.
func (s *Supervisor) handlerChanged(endpoint registry.Endpoint, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, d := range s.discoveries {
		if d.handler != endpoint.Name {
			continue
		}
		if running := d.streams[endpoint]; running != nil {
			running.retryNow()
		}
		if !known {
			s.notify(name)
		}
	}
}

// discovery returns the discovery of a Configuration, and creates it if necessary. The
// caller holds mu.
func (s *Supervisor) discovery(configuration types.NamespacedName, handler string) *discovery {
	found := s.discoveries[configuration]
	if found == nil {
		found = &discovery{
			supervisor: s, name: configuration, handler: handler,
			view: newView(time.Now()), streams: map[registry.Endpoint]*stream{},
		}
		s.discoveries[configuration] = found
	}
	if found.handler != handler {
		found.handler, found.request = handler, nil
		for endpoint := range found.streams {
			found.stop(endpoint)
		}
		found.view.ChangeHandler(time.Now())
	}
	return found
}

// sync opens and closes streams to match the request and the endpoints. The caller
// holds mu.
func (d *discovery) sync(entries []registry.Entry) {
	d.view.Expect(entries)
	expected := map[registry.Endpoint]bool{}
	for _, entry := range entries {
		expected[entry.Endpoint] = true
		running := d.streams[entry.Endpoint]
		if d.request == nil || running != nil && running.entry == entry && running.request == d.request {
			continue
		}
		if running != nil {
			d.stop(entry.Endpoint)
			sameDetails := running.request.GetDiscoveryDetails() == d.request.GetDiscoveryDetails()
			d.view.Reopen(entry.Endpoint, sameDetails, time.Now())
		}
		d.start(entry)
	}
	for endpoint := range d.streams {
		if !expected[endpoint] {
			d.stop(endpoint)
		}
	}
}

func (d *discovery) start(entry registry.Entry) {
	ctx, cancel := context.WithCancel(d.supervisor.base)
	started := newStream(entry, d.request, d.supervisor.registry.Connect, cancel)
	d.streams[entry.Endpoint] = started
	d.supervisor.running.Go(func() {
		defer cancel()
		started.run(ctx, d)
	})
}

// stop closes a stream without waiting. Its later events are ignored.
func (d *discovery) stop(endpoint registry.Endpoint) {
	d.streams[endpoint].stop()
	delete(d.streams, endpoint)
}

func (d *discovery) opened(from *stream) {
	d.count(from)
	d.handle(from, func() { d.view.Opened(from.entry.Endpoint, from.entry.Shared, time.Now()) })
}

func (d *discovery) received(from *stream, message *protocol.DiscoverResponse) {
	devices, complaint := devicesOf(message, from.entry, d.supervisor.permitted)
	d.supervisor.metrics.message(from.entry.Name)
	if complaint != "" {
		d.supervisor.metrics.failure(from.entry.Name, "faulty_list")
		d.supervisor.log.Warn("Discovery handler sent a faulty list", "configuration", d.name, "endpoint", from.entry.Endpoint, "err", complaint)
	}
	d.handle(from, func() { d.view.Received(from.entry.Endpoint, devices, complaint, time.Now()) })
}

// count records that the endpoint of a stream has answered. A stream counts until an
// attempt fails: a handler that answers each request and ends the stream, or refuses it,
// is available all the time.
func (d *discovery) count(from *stream) {
	if from.ended == nil {
		from.ended = d.supervisor.registry.Opened(from.entry.Endpoint)
	}
}

func (d *discovery) broke(from *stream, wasOpen bool, err error) {
	switch {
	case isRefusal(err): // the handler works, but the request is wrong
		d.count(from)
	case wasOpen:
	case from.ended != nil:
		from.ended(true)
		from.ended = nil
	default:
		d.supervisor.registry.Failed(from.entry.Endpoint)
	}
	d.supervisor.metrics.failure(from.entry.Name, class(err))
	d.supervisor.log.Debug("Discovery stream ended", "configuration", d.name, "endpoint", from.entry.Endpoint, "err", err)
	d.handle(from, func() {
		if isRefusal(err) {
			d.view.Refused(from.entry.Endpoint, reason(err))
		} else {
			d.view.Broke(from.entry.Endpoint, reason(err), time.Now())
		}
	})
}

func (d *discovery) closed(from *stream) {
	if from.ended != nil {
		from.ended(false)
	}
}

// handle runs the reaction to an event, unless its stream has been replaced.
func (d *discovery) handle(from *stream, react func()) {
	s := d.supervisor
	s.mu.Lock()
	current := s.discoveries[d.name] == d && d.streams[from.entry.Endpoint] == from
	if current {
		react()
	}
	s.mu.Unlock()
	if current {
		s.notify(d.name)
	}
}
