package onvif

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif/details"
	"akri.sh/akri/discovery/onvif/soap"
)

// Name is the handler's name in Configurations.
const Name = "onvif"

// Handler finds ONVIF devices. Its devices are shared: several nodes see the same ones.
type Handler struct {
	// Metrics counts probes and failures; may be nil.
	Metrics *monitor.Metrics
	// Logger receives the log; slog.Default() if nil.
	Logger *slog.Logger
}

var _ discovery.Handler = Handler{}

// Discover implements [discovery.Handler].
func (h Handler) Discover(ctx context.Context, r discovery.Request, send func([]discovery.Device) error) error {
	settings, err := details.Parse(r.Details)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	known, err := parseCredentials(r.Properties)
	if err != nil {
		return discovery.Invalid("%w", err)
	}
	client := soap.New(soap.Options{InsecureSkipVerify: settings.InsecureSkipVerify, Check: details.CheckAddress})
	failures := monitor.NewReporter(h.Metrics.Failed, h.Logger, "A camera, a filter or a part of the network does not work as expected")
	if settings.Ignored != nil {
		err := fmt.Errorf("ignored items that no camera can have; kubectl akri lint refuses them: %w", settings.Ignored)
		failures.Failed(failedFilter, "filters", err)
	}
	open := newSockets(settings, failures)
	defer open.close()
	asking := &interviewer{client: client, settings: settings, credentials: known, Reporter: failures}
	s := &session{
		settings: settings, metrics: h.Metrics, network: open, perform: asking.perform,
		tracker: newTracker(settings, failures, rand.Float64),
	}
	return s.run(ctx, send)
}
