package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"

	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/text"
)

// EmbeddedSuffix ends the names of the sockets of handlers in the agent's own process. They
// register when the agent starts, and may not exist in the next one, so they are not stored.
const EmbeddedSuffix = ".embedded"

// Bounds of the memory that handlers can make the agent use, and of how often they can have
// the Configurations updated that use them.
const (
	maxEndpoints     = 1000
	maxRefusalLength = 512
	// minSharedInterval is the time between two changes of whether a handler's devices are
	// shared: its streams are opened, and its Instances created, again.
	minSharedInterval = time.Minute
	// refusalInterval is how long the reason of a refusal counts rather than another one.
	refusalInterval = time.Minute
	// forgetRefusalAfter is longer than the kubelet waits until it starts a handler again that
	// ends when it may not register: five minutes.
	forgetRefusalAfter = 2 * ForgetAfter
)

var (
	errTooMany = errors.New("too many discovery handlers are registered: wait five minutes until offline ones are forgotten")
	errFlips   = errors.New("whether the handler's devices are shared changed less than a minute ago, and each change recreates " +
		"all of its Instances: register again later, and always with the same value")
)

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
}

// Registry holds the endpoints. It is safe for concurrent use.
type Registry struct {
	dir      string
	network  Network
	log      *slog.Logger
	interval time.Duration // checkInterval

	mu          sync.Mutex
	records     map[Endpoint]*record
	refusals    map[string]refusal // by name of the handler
	subscribers []func(endpoint Endpoint, known bool)
}

// refusal is why a handler may not register.
type refusal struct {
	reason string
	at     time.Time // when the handler tried the last time
}

// New returns the registry of the handlers in a directory. It starts with the
// endpoints that the agent's last run stored there, and with the static ones, which the
// operator has configured: they need no registration, and are never forgotten.
func New(dir string, network Network, log *slog.Logger, static ...Entry) *Registry {
	r := &Registry{
		dir: dir, network: network, log: log, interval: checkInterval,
		records: map[Endpoint]*record{}, refusals: map[string]refusal{},
	}
	entries, err := load(dir)
	if err != nil {
		log.Warn("Cannot read the stored discovery handlers; each one must register again", "err", err)
	}
	for _, entry := range entries {
		r.records[entry.Endpoint] = &record{shared: entry.Shared}
	}
	for _, entry := range static {
		r.records[entry.Endpoint] = &record{shared: entry.Shared, static: true}
	}
	return r
}

// Subscribe registers a callback: changed is called with an endpoint whenever it
// registers, and when it is forgotten. known means that it has registered as it was known,
// so [Registry.Endpoints] returns the same as before. The callback must not block.
func (r *Registry) Subscribe(changed func(endpoint Endpoint, known bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.subscribers = append(r.subscribers, changed)
}

// Register adds an endpoint or marks it as available again.
func (r *Registry) Register(entry Entry) error {
	if err := r.network.permit(entry.Endpoint); err != nil {
		return err
	}
	r.mu.Lock()
	known, isKnown := r.records[entry.Endpoint]
	if !isKnown {
		if len(r.records) >= maxEndpoints {
			r.mu.Unlock()
			return errTooMany
		}
		known = &record{shared: !entry.Shared}
		r.records[entry.Endpoint] = known
	}
	if known.static {
		entry.Shared = known.shared // the operator decides
	}
	changed, now := known.shared != entry.Shared, time.Now()
	if changed && isKnown {
		if now.Sub(known.changedAt) < minSharedInterval {
			r.mu.Unlock()
			return errFlips
		}
		known.changedAt = now
	}
	delete(r.refusals, entry.Name)
	known.registered(entry.Shared, now)
	if changed {
		r.save()
	}
	r.mu.Unlock()

	if changed {
		r.log.Info("Discovery handler registered", "handler", entry.Name, "endpoint", entry.Address, "shared", entry.Shared)
	}
	r.notify(entry.Endpoint, !changed)
	return nil
}

// refuse records why a handler may not register, for the Configurations that use it, until it
// has not tried for forgetRefusalAfter.
func (r *Registry) refuse(name string, err error, now time.Time) {
	r.log.Warn("Refused the registration of a discovery handler", "handler", name, "err", err)
	reason := text.Truncate("the discovery handler may not register: "+err.Error(), maxRefusalLength)
	r.mu.Lock()
	before, known := r.refusals[name]
	fits := len(name) <= maxNameLength && (known || len(r.refusals) < maxEndpoints)
	isNew := before.reason != reason && fits && now.Sub(before.at) >= refusalInterval
	if isNew || before.reason == reason {
		r.refusals[name] = refusal{reason, now}
	}
	r.mu.Unlock()
	if isNew {
		r.notify(Endpoint{Name: name}, false)
	}
}

// Refusal returns why a handler may not register, or "" if it has not tried or may.
func (r *Registry) Refusal(handler string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusals[handler].reason
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

// Has reports whether a handler has an endpoint.
func (r *Registry) Has(handler string) bool { return len(r.Endpoints(handler)) > 0 }

// Snapshot returns the status of every endpoint, sorted.
func (r *Registry) Snapshot() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Status
	for endpoint, known := range r.records {
		all = append(all, Status{Entry{endpoint, known.shared}, known.state()})
	}
	slices.SortFunc(all, func(a, b Status) int { return a.Compare(b.Endpoint) })
	return all
}

// Connect returns an established connection to an endpoint. The caller closes it.
func (r *Registry) Connect(ctx context.Context, endpoint Endpoint) (*grpc.ClientConn, error) {
	var secured *tls.Config
	if endpoint.Network {
		var err error
		if secured, err = r.network.tls(endpoint.Name); err != nil {
			return nil, fmt.Errorf("connect to discovery handler %s: %w", endpoint, err)
		}
	}
	return endpoint.connect(ctx, r.dialer(endpoint), secured)
}

// dialer returns how to connect to an endpoint. Only addresses that the operator permits
// are used, also if a name resolves to others.
func (r *Registry) dialer(endpoint Endpoint) *net.Dialer {
	if !endpoint.Network {
		return &net.Dialer{}
	}
	return &net.Dialer{
		KeepAliveConfig: keepAlive,
		Control: func(_, address string, _ syscall.RawConn) error {
			return r.network.permit(Endpoint{Name: endpoint.Name, Network: true, Address: address})
		},
	}
}

// Opened records that a stream to an endpoint is open and that the endpoint answers. The caller
// calls ended once, and says whether the stream broke or was closed by the agent.
func (r *Registry) Opened(endpoint Endpoint) (ended func(broke bool)) {
	var of *record // nil if the endpoint was forgotten
	r.change(endpoint, func(known *record) {
		known.opened()
		of = known
	})
	return func(broke bool) {
		r.change(endpoint, func(known *record) {
			switch {
			case known != of: // it is known again, and does not count the stream
			case broke:
				known.broke(time.Now())
			default:
				known.closed()
			}
		})
	}
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
	}
}

// Run forgets endpoints that stay offline, and refusals, until ctx is done.
func (r *Registry) Run(ctx context.Context) error {
	for backoff.Sleep(ctx, r.interval) {
		r.forget(time.Now())
	}
	return nil
}

// forget removes endpoints that have been offline, and refusals that were not repeated, for
// too long.
func (r *Registry) forget(now time.Time) {
	var gone, refused []Endpoint
	r.mu.Lock()
	for name, refusal := range r.refusals {
		if now.Sub(refusal.at) >= forgetRefusalAfter {
			delete(r.refusals, name)
			refused = append(refused, Endpoint{Name: name})
		}
	}
	for endpoint, known := range r.records {
		if known.forgotten(now) {
			delete(r.records, endpoint)
			gone = append(gone, endpoint)
		}
	}
	if len(gone) > 0 {
		r.save()
	}
	r.mu.Unlock()

	for _, endpoint := range gone {
		r.log.Warn("Discovery handler forgotten because it was offline for too long; it can register again",
			"handler", endpoint.Name, "endpoint", endpoint.Address, "limit", ForgetAfter)
	}
	for _, endpoint := range append(gone, refused...) {
		r.notify(endpoint, false)
	}
}

func (r *Registry) notify(endpoint Endpoint, known bool) {
	r.mu.Lock()
	subscribers := slices.Clone(r.subscribers)
	r.mu.Unlock()
	for _, changed := range subscribers {
		changed(endpoint, known)
	}
}

// save writes the endpoints to the file, except those that this process configures or serves
// itself, and those on the network, whose address may soon be somebody else's. The caller holds
// mu, which keeps the files in the order of the changes; the file is small and local.
func (r *Registry) save() {
	var entries []Entry
	for _, endpoint := range slices.SortedFunc(maps.Keys(r.records), Endpoint.Compare) {
		if !endpoint.Network && !strings.HasSuffix(endpoint.Address, EmbeddedSuffix) {
			entries = append(entries, Entry{Endpoint: endpoint, Shared: r.records[endpoint].shared})
		}
	}
	if err := store(r.dir, entries); err != nil {
		r.log.Warn("Cannot store the discovery handlers; after a restart of the agent each one must register again", "err", err)
	}
}
