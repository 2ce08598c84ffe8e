package udev

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/internal/budget"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/udev/details"
)

const (
	// Name is the handler's name in Configurations.
	Name = "udev"
	// DefaultSys is the default of Options.Sys.
	DefaultSys = "/sys"
	// DefaultRun is the default of Options.Run.
	DefaultRun = "/run/udev"
	// scanInterval is the mean time between full scans, which find what events did not
	// tell.
	scanInterval = time.Minute
	// sendInterval is the minimum time between two lists. The first change is sent at
	// once; those that follow it closely are sent together.
	sendInterval = 100 * time.Millisecond
	// scanRetry is the time until the next scan after one that failed.
	scanRetry = 5 * time.Second
	// firstListTimeout is how long the first list waits for devices that cannot be
	// evaluated yet: without them, they would seem to be gone after a restart. It is sent
	// when they are evaluated for the first time after that.
	firstListTimeout = 5 * time.Second
	// matchBytes is the memory of a device that matches, in addition to its texts.
	matchBytes = 768
)

// The reasons of akri_handler_failures_total.
const (
	failedScan        = "scan"
	failedAttribute   = "attribute_timeout"
	failedRead        = "read"
	failedUevents     = "uevents"
	failedDataWatch   = "data_watch"
	failedEventsLost  = "events_lost"
	failedDuplicateID = "duplicate_id"
)

// Akri's names in discoveryProperties.
const (
	resourceProperty = "devicePluginResourceName"
	vfioProperty     = "vfioPassthrough"
)

// Options are the directories and bounds of a Handler. The zero value is right for a
// handler on a node.
type Options struct {
	// Sys is the directory where sysfs is mounted; DefaultSys if empty.
	Sys string
	// Run is the directory of udevd; DefaultRun if empty.
	Run string
	// ScanInterval is the mean time between full scans; a minute if 0.
	ScanInterval time.Duration
	// Metrics receives scans and failures; may be nil.
	Metrics *monitor.Metrics
}

// Handler finds the devices of the node. Create it with New.
type Handler struct {
	options Options
	tree    *tree
	hub     *hub
	// scanRetry and firstListTimeout are the constants, except in tests.
	scanRetry, firstListTimeout time.Duration
}

var _ discovery.Handler = (*Handler)(nil)

// New returns a Handler.
func New(options Options) *Handler {
	if options.Sys == "" {
		options.Sys = DefaultSys
	}
	if options.Run == "" {
		options.Run = DefaultRun
	}
	if options.ScanInterval == 0 {
		options.ScanInterval = scanInterval
	}
	t := newTree(options.Sys, options.Run, options.Metrics.Failed)
	return &Handler{
		options: options, tree: t, hub: &hub{tree: t, reopenInterval: defaultReopenInterval},
		scanRetry: scanRetry, firstListTimeout: firstListTimeout,
	}
}

// Discover implements [discovery.Handler].
func (h *Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	parsed, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	events := h.hub.subscribe() // before the scan, so that nothing is missed
	defer events.close()
	s := &search{
		known:   budget.Open(ctx),
		Handler: h, events: events, send: send, finder: newFinder(h.tree, parsed),
		presenter: &presenter{
			details: parsed, failed: h.options.Metrics.Failed,
			resource: strings.TrimSpace(string(request.Properties[resourceProperty])),
			vfio:     strings.EqualFold(strings.TrimSpace(string(request.Properties[vfioProperty])), "true"),
		},
	}
	return s.run(ctx)
}

// search is one call of Discover.
type search struct {
	*Handler
	events    *subscription
	send      func([]discovery.Device) error
	finder    *finder
	presenter *presenter
	// known counts the devices that match.
	known *budget.Account

	began  time.Time
	rescan *time.Timer
	// failing is whether the last scan failed.
	failing bool

	sent   []discovery.Device
	sentAt time.Time
}

func (s *search) run(ctx context.Context) error {
	s.began, s.rescan = time.Now(), time.NewTimer(s.pause())
	defer s.rescan.Stop()
	if err := s.scan(ctx, true); err != nil {
		return err
	}
	for {
		if err := s.report(); err != nil {
			return err
		}
		ready, wake := s.next(time.Now())
		select {
		case <-ctx.Done():
		case <-ready:
			devPaths, all := s.events.take()
			s.refresh(ctx, devPaths, all)
		case <-wake:
			s.refresh(ctx, s.finder.overdue(time.Now()), false)
		case <-s.rescan.C:
			_ = s.scan(ctx, false) // counted, and repeated soon
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// scan looks at all devices, and plans the next scan.
func (s *search) scan(ctx context.Context, first bool) error {
	began := time.Now()
	if err := s.finder.scan(ctx, began, first); err != nil {
		s.rescan.Reset(min(s.scanRetry, s.pause()))
		if ctx.Err() != nil {
			return err
		}
		s.tree.failed(failedScan)
		if !s.failing {
			slog.Warn("The devices could not be listed; the known ones are kept", "err", err)
		}
		s.failing = true
		return err
	}
	s.failing = false
	s.rescan.Reset(s.pause())
	s.options.Metrics.Scanned(began)
	return nil
}

// refresh looks at some devices, or at all.
func (s *search) refresh(ctx context.Context, devPaths []string, all bool) {
	if all || !s.finder.refresh(ctx, time.Now(), devPaths) {
		_ = s.scan(ctx, false) // counted, and repeated soon
	}
}

// report sends the list if it differs from the last one.
func (s *search) report() error {
	if s.sentAt.IsZero() && len(s.finder.retries) > 0 && time.Since(s.began) < s.firstListTimeout {
		return nil
	}
	if err := s.known.Set(s.finder.bytes()); err != nil {
		return err
	}
	devices := s.presenter.devices(s.finder.matches)
	if !s.sentAt.IsZero() && reflect.DeepEqual(devices, s.sent) {
		return nil
	}
	s.sent, s.sentAt = devices, time.Now()
	return s.send(devices)
}

// next returns the channel of events, or nil if it is too early for another list, and a
// channel that wakes the search by then, or when a device has waited for udevd.
func (s *search) next(now time.Time) (ready <-chan struct{}, wake <-chan time.Time) {
	if early := s.sentAt.Add(sendInterval).Sub(now); early > 0 {
		return nil, time.After(early)
	}
	if deadline, ok := s.finder.nextDeadline(now); ok {
		wake = time.After(deadline.Sub(now))
	}
	return s.events.ready, wake
}

// pause returns the time until the next full scan, so that the nodes of a cluster scan
// at different times.
func (s *search) pause() time.Duration {
	return time.Duration(float64(s.options.ScanInterval) * (0.9 + 0.2*rand.Float64()))
}
