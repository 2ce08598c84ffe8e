package udev

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/udev/details"
	"akri.sh/akri/internal/backoff"
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
	// checkInterval is how often undecided devices and udev's database are looked at.
	// A scan is due to the database only after so many times the duration of the last.
	checkInterval = 500 * time.Millisecond
	maxScanShare  = 10
	// timestampAge is the age of a timestamp of a file after which a change leads to
	// another one, at least. The kernel counts in ticks.
	timestampAge = 50 * time.Millisecond
	// firstListTimeout is how long the first list waits for devices that cannot be
	// evaluated yet: without them, they would seem to be gone after a restart. It is sent
	// when they are evaluated for the first time after that.
	firstListTimeout = 5 * time.Second
)

// The reasons of akri_handler_failures_total.
const (
	failedScan        = "scan"
	failedAttribute   = "attribute_timeout"
	failedRead        = "read"
	failedUevents     = "uevents"
	failedEventsLost  = "events_lost"
	failedDuplicateID = "duplicate_id"
	failedTooMany     = "too_many_devices"
	failedTooLarge    = "values_too_large"
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
	options    Options
	tree       *tree
	openEvents func() (source, error)
	// firstListTimeout is the constant, except in tests.
	firstListTimeout time.Duration
}

var _ discovery.Handler = (*Handler)(nil)

// New returns a Handler.
func New(options Options) *Handler {
	options.Sys, options.Run = cmp.Or(options.Sys, DefaultSys), cmp.Or(options.Run, DefaultRun)
	options.ScanInterval = cmp.Or(options.ScanInterval, scanInterval)
	return &Handler{
		options: options, tree: newTree(options.Sys, options.Run, options.Metrics.Failed), openEvents: openUevents,
		firstListTimeout: firstListTimeout,
	}
}

// Discover implements [discovery.Handler].
func (h *Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	parsed, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &search{Handler: h, events: make(chan string, maxEvents), send: send, finder: newFinder(h.tree, parsed), began: time.Now()}
	s.finder.resource = strings.TrimSpace(string(request.Properties[resourceProperty]))
	s.finder.vfio = strings.EqualFold(strings.TrimSpace(string(request.Properties[vfioProperty])), "true")
	from, err := h.openEvents() // before the scan, so that nothing is missed
	var receiving sync.WaitGroup
	receiving.Go(func() { h.receive(ctx, from, err, s.events) })
	defer receiving.Wait()
	defer cancel()
	return s.run(ctx)
}

// search is one call of Discover.
type search struct {
	*Handler
	events chan string // devices with events
	send   func([]discovery.Device) error
	finder *finder

	began time.Time
	// rescan is when all devices are looked at again. Before check, they are not because
	// of udev's database.
	rescan, check time.Time
	// stored is when the database was changed the last time.
	stored time.Time
	// failing is whether devices could not be listed the last time.
	failing bool
	// sent is the last list; nil before the first.
	sent []discovery.Device
}

func (s *search) run(ctx context.Context) error {
	s.hasNewEntries(s.began)
	if err := s.look(ctx, []string{allDevices}); err != nil {
		return err
	}
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := s.report(ctx); err != nil {
			return err
		}
		_ = s.look(ctx, s.next(ctx, tick.C)) // a failure is counted, and all devices are looked at again soon
	}
	return ctx.Err()
}

// next returns the devices to look at when there are some.
func (s *search) next(ctx context.Context, tick <-chan time.Time) (changed []string) {
	for len(changed) == 0 {
		select {
		case <-ctx.Done():
			return nil
		case devPath := <-s.events:
			changed = []string{devPath}
			for range len(s.events) {
				changed = append(changed, <-s.events)
			}
		case now := <-tick:
			changed = slices.Collect(maps.Keys(s.finder.undecided))
			if !s.rescan.After(now) || s.finder.usesDatabase && !s.check.After(now) && s.hasNewEntries(now) {
				changed = []string{allDevices}
			}
		}
	}
	return changed
}

// hasNewEntries reports whether udev's database has changed since the last call. If it
// has changed just now, another change may not be seen, so the next call reports it again.
func (s *search) hasNewEntries(now time.Time) bool {
	stored := s.tree.writtenTime("")
	if stored.Equal(s.stored) {
		return false
	}
	if age := now.Sub(stored); age > timestampAge || age < 0 {
		s.stored = stored
	}
	return true
}

// look looks at some devices, and plans when it looks at all: soon if devices may be
// missing.
func (s *search) look(ctx context.Context, changed []string) error {
	began := time.Now()
	err := s.finder.look(ctx, began, changed)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if slices.Contains(changed, allDevices) {
		s.options.Metrics.Scanned(began)
		pause := float64(s.options.ScanInterval) * (0.9 + 0.2*rand.Float64()) // nodes scan at different times
		s.rescan, s.check = began.Add(time.Duration(pause)), began.Add(maxScanShare*time.Since(began))
	}
	if err != nil {
		s.rescan = s.check
		s.tree.failed(failedScan)
		if !s.failing {
			slog.Warn("The devices could not be listed; the known ones are kept", "err", err)
		}
	}
	s.failing = err != nil
	return err
}

// report sends the list if it differs from the last one. Then it pauses.
func (s *search) report(ctx context.Context) error {
	if s.sent == nil && len(s.finder.undecided) > 0 && time.Since(s.began) < s.firstListTimeout {
		return nil
	}
	devices := s.finder.devices()
	if s.sent != nil && reflect.DeepEqual(devices, s.sent) {
		return nil
	}
	for range s.finder.duplicates { // once for each list
		s.tree.failed(failedDuplicateID)
	}
	s.sent = devices
	if err := s.send(devices); err != nil {
		return err
	}
	backoff.Sleep(ctx, sendInterval)
	return nil
}
