package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
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

	maxSecondScan time.Duration // the constant, except in tests
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
	s := &scanner{wanted: wanted, client: c, metrics: h.Metrics, log: cmp.Or(h.Log, slog.Default())}
	return s.run(ctx, cmp.Or(h.maxSecondScan, maxSecondScan), send)
}

const (
	// maxSecondScan bounds the pause before the second scan. Agents delete the devices that a
	// handler has known before its restart and still lacks 90 s after its first list.
	maxSecondScan = 75 * time.Second
	// maxFirstList bounds how long the first list is delayed. Agents wait for five minutes.
	maxFirstList = 4 * time.Minute
)

// run scans until ctx is done, and sends each list that differs from the one before. If
// the index cannot be read, the devices are kept for as many scans as a device may miss.
func (s *scanner) run(ctx context.Context, maxSecond time.Duration, send func([]discovery.Device) error) error {
	seen := newState(s.wanted.Misses)
	var sent []discovery.Device
	first, cancel := context.WithTimeout(ctx, maxFirstList)
	targets, err := s.scan(first)
	cancel()
	interval := min(s.wanted.Interval(), maxSecond)
	for failures := 0; ; targets, err = s.scan(ctx) {
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
		if !backoff.Sleep(ctx, interval-rand.N(interval/5)) { // nodes scan at different times
			return ctx.Err()
		}
		interval = s.wanted.Interval()
	}
}

// maxErrorBytes bounds the text of an error, which may contain parts of a response.
const maxErrorBytes = 500
