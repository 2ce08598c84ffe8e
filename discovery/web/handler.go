package web

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/web/details"
	"akri.sh/akri/internal/backoff"
	"akri.sh/akri/internal/text"
)

// Name is the handler's name in Configurations.
const Name = "http"

// Handler finds devices that are web servers.
type Handler struct {
	// Networks are the operator's rules.
	Networks Networks
	// Metrics counts scans and failures; may be nil.
	Metrics *monitor.Metrics
	// Log receives failures; slog.Default() if nil.
	Log *slog.Logger
}

var _ discovery.Handler = Handler{}

// scanner looks for the devices of one Configuration.
type scanner struct {
	wanted  *details.Details
	client  *client
	metrics *monitor.Metrics
	log     *slog.Logger
}

// Discover implements [discovery.Handler].
func (h Handler) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	wanted, err := details.Parse(request.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	c, err := newClient(wanted, request.Properties, h.Networks)
	if err != nil {
		return err
	}
	defer c.close()
	s := &scanner{wanted: wanted, client: c, metrics: h.Metrics, log: h.Log}
	if s.log == nil {
		s.log = slog.Default()
	}
	return s.run(ctx, send)
}

const (
	// maxFirstAttempts bounds how often a device must fail before it is missing in the first
	// list. Agents delete the devices that a handler has known before its restart, and one
	// lost response must not do that.
	maxFirstAttempts = 3
	// firstRetry is about the pause after the first of those attempts.
	firstRetry = 500 * time.Millisecond
	// maxFirstList bounds how long the first list is delayed. Agents wait for five minutes.
	maxFirstList = 4 * time.Minute
)

// maxUnreachable is how long the first list waits for devices that nobody reaches: the network
// or DNS may be away when the handler starts. Tests shorten it.
var maxUnreachable = time.Minute

// wantsAgain reports whether a device is requested again for the first list.
func (s *scanner) wantsAgain(t target, attempts int, began time.Time) bool {
	unreachable := slices.Contains([]string{reasonConnect, reasonTimeout}, reasonOf(t.err))
	return t.err != nil && (attempts < min(s.wanted.Misses, maxFirstAttempts) || unreachable && time.Since(began) < maxUnreachable)
}

// run scans until ctx is done, and sends each list that differs from the one before. If
// the index cannot be read, the devices are kept for as many scans as a device may miss.
func (s *scanner) run(ctx context.Context, send func([]discovery.Device) error) error {
	seen := newState(s.wanted.Misses)
	var sent []discovery.Device
	first, cancel := context.WithTimeout(ctx, maxFirstList)
	targets, err := s.scan(first, true)
	cancel()
	for failures := 0; ; targets, err = s.scan(ctx, false) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.metrics.Failed(reasonOf(err))
			if failures++; sent == nil || failures >= s.wanted.Misses {
				return errors.New(text.Truncate(text.OneLine(err.Error()), maxErrorBytes))
			}
			s.log.Debug("Could not read the index", "err", err)
		default:
			failures = 0
			seen.apply(targets)
			if devices := seen.list(); sent == nil || !reflect.DeepEqual(devices, sent) {
				if err := send(devices); err != nil {
					return err
				}
				sent = devices
			}
		}
		if !pause(ctx, s.wanted.Interval()) {
			return ctx.Err()
		}
	}
}

// maxErrorBytes bounds the text of an error, which may contain parts of a response.
const maxErrorBytes = 500

// pause waits for about an interval: the jitter spreads the requests of the nodes. It
// reports whether ctx is not done.
func pause(ctx context.Context, interval time.Duration) bool {
	return backoff.Sleep(ctx, interval-rand.N(interval/5))
}
