package registry

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxEndpoints bounds the memory that handlers can make the agent use.
const maxEndpoints = 1000

var errTooMany = errors.New("too many discovery handlers are registered: wait five minutes until offline ones are forgotten")

// Entry is a known endpoint.
type Entry struct {
	Endpoint
	// Shared means that other nodes see the same devices.
	Shared bool `json:"shared"`
}

// Status is an entry with its state.
type Status struct {
	Entry
	State State
	// OfflineSince is set while State is Offline.
	OfflineSince time.Time
	// Streams is the number of open streams.
	Streams int
}

// Registry holds the endpoints. It is safe for concurrent use.
type Registry struct {
	dir     string
	log     *slog.Logger
	recheck chan struct{} // an endpoint may have gone offline

	mu          sync.Mutex
	records     map[Endpoint]*record
	subscribers []func(handler string)
}

// New returns the registry of the handlers in a directory. It starts with the
// endpoints that the agent's last run stored there.
func New(dir string, log *slog.Logger) *Registry {
	r := &Registry{
		dir: dir, log: log,
		recheck: make(chan struct{}, 1),
		records: map[Endpoint]*record{},
	}
	entries, err := load(dir)
	if err != nil {
		log.Warn("Cannot read the stored discovery handlers; each one must register again", "err", err)
	}
	for _, entry := range entries {
		r.records[entry.Endpoint] = &record{shared: entry.Shared}
	}
	return r
}

// Subscribe registers a callback: changed is called with a handler's name whenever
// one of its endpoints registers, even if it is known, and when one is forgotten. It
// must not block. Subscribe must be called before Run.
func (r *Registry) Subscribe(changed func(handler string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

// Register adds an endpoint or marks it as available again.
func (r *Registry) Register(entry Entry) error {
	r.mu.Lock()
	known := r.records[entry.Endpoint]
	if known == nil {
		if len(r.records) >= maxEndpoints {
			r.mu.Unlock()
			return errTooMany
		}
		known = &record{shared: !entry.Shared}
		r.records[entry.Endpoint] = known
	}
	changed := known.shared != entry.Shared
	known.registered(entry.Shared)
	if changed {
		r.save()
	}
	r.mu.Unlock()

	if changed {
		r.log.Info("Discovery handler registered", "handler", entry.Name, "endpoint", entry.Address, "shared", entry.Shared)
	}
	r.notify(entry.Name)
	return nil
}

// Endpoints returns the endpoints of a handler, sorted.
func (r *Registry) Endpoints(handler string) []Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var entries []Entry
	for endpoint, known := range r.records {
		if endpoint.Name == handler {
			entries = append(entries, Entry{endpoint, known.shared})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return a.Compare(b.Endpoint) })
	return entries
}

// Snapshot returns the status of every endpoint, sorted.
func (r *Registry) Snapshot() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Status
	for endpoint, known := range r.records {
		all = append(all, Status{Entry{endpoint, known.shared}, known.state(), known.offlineSince, known.streams})
	}
	slices.SortFunc(all, func(a, b Status) int { return a.Compare(b.Endpoint) })
	return all
}

// Opened records that a stream to an endpoint is open. Closed or Broke follows.
func (r *Registry) Opened(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.opened() })
}

// Closed records that the agent closed a stream.
func (r *Registry) Closed(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.closed() })
}

// Broke records that a stream ended without the agent closing it.
func (r *Registry) Broke(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.broke(time.Now()) })
}

// Failed records that an endpoint did not answer.
func (r *Registry) Failed(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.failed(time.Now()) })
}

func (r *Registry) change(endpoint Endpoint, transition func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.records[endpoint]
	if known == nil {
		return // forgotten, and its streams are being closed
	}
	before := known.state()
	transition(known)
	if after := known.state(); after != before {
		r.log.Info("Discovery handler is "+string(after), "handler", endpoint.Name, "endpoint", endpoint.Address, "before", before)
		select {
		case r.recheck <- struct{}{}:
		default:
		}
	}
}

// Run forgets endpoints that stay offline, until ctx is done.
func (r *Registry) Run(ctx context.Context) error {
	for {
		next := r.forget(time.Now())
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-r.recheck:
			timer.Stop()
		}
	}
}

// forget removes endpoints that have been offline for too long. It returns the delay
// until the next check.
func (r *Registry) forget(now time.Time) (next time.Duration) {
	next = ForgetAfter
	var gone []Endpoint
	r.mu.Lock()
	for endpoint, known := range r.records {
		at, offline := known.forgetAt()
		switch {
		case !offline:
		case at.After(now):
			next = min(next, at.Sub(now))
		default:
			gone = append(gone, endpoint)
		}
	}
	for _, endpoint := range gone {
		delete(r.records, endpoint)
	}
	if len(gone) > 0 {
		r.save()
	}
	r.mu.Unlock()

	for _, endpoint := range gone {
		r.log.Warn("Discovery handler forgotten because it was offline for too long; it can register again",
			"handler", endpoint.Name, "endpoint", endpoint.Address, "limit", ForgetAfter)
		r.notify(endpoint.Name)
	}
	return next
}

func (r *Registry) notify(handler string) {
	r.mu.Lock()
	subscribers := slices.Clone(r.subscribers)
	r.mu.Unlock()
	for _, changed := range subscribers {
		changed(handler)
	}
}

// save writes the endpoints to the file. The caller holds mu, which keeps the
// files in the order of the changes; the file is small and local.
func (r *Registry) save() {
	var entries []Entry
	for _, endpoint := range slices.SortedFunc(maps.Keys(r.records), Endpoint.Compare) {
		entries = append(entries, Entry{endpoint, r.records[endpoint].shared})
	}
	if err := store(r.dir, entries); err != nil {
		r.log.Warn("Cannot store the discovery handlers; after a restart of the agent each one must register again", "err", err)
	}
}
