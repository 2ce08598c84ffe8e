package opcua

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/opcua/details"
	"akri.sh/akri/internal/backoff"
)

const (
	// maxFirstList bounds how long the first list is delayed: until then, each target has
	// its time, with all that its answer causes. A handler that restarts must not report a
	// device as gone because it was not asked. Agents wait for five minutes.
	maxFirstList = 285 * time.Second
	// firstPatience is how long a target that fails is asked again when it is new: one lost
	// answer must not report a device as gone either.
	firstPatience = 3 * time.Second
	// minPause is the minimum time between polls of a target that take longer than the
	// interval, and between lists.
	minPause = time.Second / 2
	// maxFound bounds the targets that mDNS and scans may add.
	maxFound = 1000
	// maxServers bounds the servers that all targets report. Agents publish 1000.
	maxServers = 2000
	// maxRequestCalls bounds the calls and look-ups of a request at a time. It is a fraction
	// of maxCalls, so that one request cannot take all of them.
	maxRequestCalls = 128
)

// search looks for the servers of one request.
type search struct {
	handler  *Handler
	details  *details.Details
	calls    *semaphore.Weighted // of maxRequestCalls
	servers  *semaphore.Weighted // of maxServers
	failures *monitor.Reporter
	changed  chan struct{} // has a value when the devices may have changed
	running  sync.WaitGroup

	mu         sync.Mutex
	targets    map[string]*target // by key
	configured int                // of the targets
	announced  []*target          // the latest list of mDNS
	finding    int                // mDNS and scans without a first result
}

func newSearch(h *Handler, d *details.Details) *search {
	return &search{
		handler: h, details: d, calls: semaphore.NewWeighted(maxRequestCalls), servers: semaphore.NewWeighted(maxServers),
		failures: monitor.NewReporter(h.options.Metrics.Failed, h.options.Log, "An OPC UA server does not work as expected"),
		changed:  make(chan struct{}, 1), targets: map[string]*target{},
	}
}

// run polls until ctx is done or send fails.
func (s *search) run(ctx context.Context, send func([]discovery.Device) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.running.Wait()
	defer cancel()
	s.begin(ctx)
	var sent []discovery.Device
	limit := time.After(maxFirstList)
	for isLate := false; ; backoff.Sleep(ctx, minPause) {
		select {
		case <-s.changed:
		case <-limit:
			isLate = true
		case <-ctx.Done():
			return ctx.Err()
		}
		all, isComplete := s.current()
		if !isComplete && !isLate && sent == nil {
			continue
		}
		if latest := devices(s.details, all); sent == nil || !reflect.DeepEqual(latest, sent) {
			if err := send(latest); err != nil {
				return err
			}
			sent = latest
		}
	}
}

// notify makes run look at the devices.
func (s *search) notify() {
	select {
	case s.changed <- struct{}{}:
	default: // it has a value
	}
}

// begin starts the targets of the details, and what finds others.
func (s *search) begin(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range []struct {
		method method
		urls   *details.URLs
	}{{standard, s.details.Method.Standard}, {network, s.details.Method.Network}} {
		if each.urls == nil {
			continue
		}
		for _, asked := range each.urls.DiscoveryURLs {
			url, _ := details.ParseURL(asked) // the details are valid
			s.start(ctx, &target{method: each.method, candidate: candidate{asked, url}, order: s.configured})
			s.configured++
		}
	}
	if s.details.Method.MDNS != nil {
		s.finding++
		s.running.Go(func() { s.browse(ctx, sync.OnceFunc(s.found)) })
	}
	if s.details.Method.Scan != nil {
		s.finding++
		s.running.Go(func() { s.scan(ctx, sync.OnceFunc(s.found)) })
	}
}

// found records that mDNS or a scan has a first result.
func (s *search) found() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finding--
	s.notify()
}

// start begins to poll a target. It is called with mu.
func (s *search) start(ctx context.Context, t *target) {
	s.targets[t.key()], t.servers = t, map[string]*server{}
	s.running.Go(func() { s.follow(ctx, t) })
}

// announce replaces the targets that mDNS announces.
func (s *search) announce(ctx context.Context, announced []*target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range announced {
		if known := s.targets[t.key()]; known != nil {
			known.addresses = t.addresses
		}
	}
	s.announced = announced
	if !s.admit(ctx, announced...) {
		s.handler.options.Metrics.Failed(reasonTooMany)
	}
}

// admit starts those of some targets that are new, and reports whether there was room for
// all. It is called with mu.
func (s *search) admit(ctx context.Context, found ...*target) bool {
	for _, t := range found {
		if s.targets[t.key()] != nil {
			continue
		}
		if len(s.targets)-s.configured >= maxFound {
			return false
		}
		s.start(ctx, t)
	}
	return true
}

// current returns what the targets report, those of the first target first, so that the
// result does not depend on the order of answers. It is complete when each target, mDNS and
// the scan have a first result.
func (s *search) current() (all []application, isComplete bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isComplete = s.finding == 0
	for _, t := range slices.SortedFunc(maps.Values(s.targets), func(a, b *target) int {
		return cmp.Or(a.order-b.order, strings.Compare(a.text, b.text))
	}) {
		all = append(all, t.published...)
		isComplete = isComplete && t.isPolled
	}
	return all, isComplete
}
