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

// maxEndpoints bounds what handlers can make the agent remember.
const maxEndpoints = 1000

var errTooMany = errors.New("too many discovery handlers are registered; those offline are forgotten after five minutes")

// Entry is a known endpoint.
type Entry struct {
	Endpoint
	// Shared tells whether other nodes see the same devices.
	Shared bool `json:"shared"`
}

// Status is an entry and how it stands.
type Status struct {
	Entry
	State State
	// OfflineSince is set while State is Offline.
	OfflineSince time.Time
	// Streams is how many are open.
	Streams int
}

// Registry holds the endpoints. It is safe for concurrent use.
type Registry struct {
	directory string
	log       *slog.Logger
	poke      chan struct{} // something may have gone offline

	mu          sync.Mutex
	records     map[Endpoint]*record
	subscribers []func(handler string)
}

// New returns a registry of the handlers that meet in a directory; those of the
// agent's last run are known already.
func New(directory string, log *slog.Logger) *Registry {
	r := &Registry{
		directory: directory, log: log,
		poke:    make(chan struct{}, 1),
		records: map[Endpoint]*record{},
	}
	entries, err := load(directory)
	if err != nil {
		log.Warn("the discovery handlers of the last run are not known; they come back as they register", "err", err)
	}
	for _, entry := range entries {
		r.records[entry.Endpoint] = &record{shared: entry.Shared}
	}
	return r
}

// Subscribe has a function called with a handler's name whenever one of its
// endpoints has registered, even if it was known, and when one is forgotten. It
// must not block. Subscribe before Run.
func (r *Registry) Subscribe(changed func(handler string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

// Register adds an endpoint, or brings it back.
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
		r.log.Info("discovery handler registered", "handler", entry.Name, "endpoint", entry.Address, "shared", entry.Shared)
	}
	r.tell(entry.Name)
	return nil
}

// Endpoints are the known ones of a handler, in order.
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

// Snapshot tells how every endpoint stands, in order.
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

// Opened says that a stream to an endpoint stands; each is followed by Closed
// or Broke.
func (r *Registry) Opened(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.opened() })
}

// Closed says that we ended a stream.
func (r *Registry) Closed(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.closed() })
}

// Broke says that a stream ended without our doing.
func (r *Registry) Broke(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.broke(time.Now()) })
}

// Failed says that an endpoint did not answer.
func (r *Registry) Failed(endpoint Endpoint) {
	r.change(endpoint, func(known *record) { known.failed(time.Now()) })
}

func (r *Registry) change(endpoint Endpoint, transition func(*record)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.records[endpoint]
	if known == nil {
		return // forgotten; its streams end
	}
	before := known.state()
	transition(known)
	if after := known.state(); after != before {
		r.log.Info("discovery handler is "+string(after), "handler", endpoint.Name, "endpoint", endpoint.Address, "before", before)
		select {
		case r.poke <- struct{}{}:
		default:
		}
	}
}

// Run forgets the endpoints that stay offline, until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	for {
		next := r.forget(time.Now())
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		case <-r.poke:
			timer.Stop()
		}
	}
}

// forget drops what has been offline for too long and says when to look again.
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
		r.log.Warn("discovery handler forgotten: it was offline for too long; it comes back when it registers",
			"handler", endpoint.Name, "endpoint", endpoint.Address, "limit", ForgetAfter)
		r.tell(endpoint.Name)
	}
	return next
}

func (r *Registry) tell(handler string) {
	r.mu.Lock()
	subscribers := slices.Clone(r.subscribers)
	r.mu.Unlock()
	for _, changed := range subscribers {
		changed(handler)
	}
}

// save writes the known endpoints to the file; the lock is held, so that files
// are written in the order of changes. It is a small local file.
func (r *Registry) save() {
	var entries []Entry
	for _, endpoint := range slices.SortedFunc(maps.Keys(r.records), Endpoint.Compare) {
		entries = append(entries, Entry{endpoint, r.records[endpoint].shared})
	}
	if err := store(r.directory, entries); err != nil {
		r.log.Warn("the discovery handlers cannot be noted for the agent's next run", "err", err)
	}
}
