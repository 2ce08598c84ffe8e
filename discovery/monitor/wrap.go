package monitor

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/text"
)

// Wrap returns a handler that counts and logs the devices that another one sends.
func (m *Metrics) Wrap(handler discovery.Handler, log *slog.Logger) discovery.Handler {
	return &wrapped{handler: handler, metrics: m, log: log}
}

type wrapped struct {
	handler discovery.Handler
	metrics *Metrics
	log     *slog.Logger
}

// Discover implements [discovery.Handler].
func (w *wrapped) Discover(ctx context.Context, request discovery.Request, send func([]discovery.Device) error) error {
	w.metrics.requests.Inc()
	defer w.metrics.requests.Dec()
	known := map[string]discovery.Device{}
	defer func() { w.metrics.devices.Sub(float64(len(known))) }()
	return w.handler.Discover(ctx, request, func(devices []discovery.Device) error {
		known = w.compare(known, devices)
		return send(devices)
	})
}

// maxLines is how many devices one list may add to the log; the changes of a list with
// more, such as the first one of a large site, are one line.
const maxLines = 10

// compare reports how a list differs from the previous one.
func (w *wrapped) compare(before map[string]discovery.Device, devices []discovery.Device) map[string]discovery.Device {
	now := make(map[string]discovery.Device, len(devices))
	for _, device := range devices {
		device.Properties = maps.Clone(device.Properties)
		now[device.ID] = device
	}
	var appeared, changed, disappeared []string
	for id, device := range now {
		switch former, found := before[id]; {
		case !found:
			appeared = append(appeared, id)
		case !equal(former, device):
			changed = append(changed, id)
		}
	}
	for id := range before {
		if _, found := now[id]; !found {
			disappeared = append(disappeared, id)
		}
	}
	w.metrics.devices.Add(float64(len(now) - len(before)))
	w.metrics.changes.WithLabelValues("appeared").Add(float64(len(appeared)))
	w.metrics.changes.WithLabelValues("changed").Add(float64(len(changed)))
	w.metrics.changes.WithLabelValues("disappeared").Add(float64(len(disappeared)))
	if len(appeared)+len(changed)+len(disappeared) > maxLines {
		w.log.Info("Devices changed", "appeared", len(appeared), "disappeared", len(disappeared), "changed", len(changed), "devices", len(now))
		return now
	}
	w.logEach("A device appeared", appeared)
	w.logEach("A device changed", changed)
	w.logEach("A device disappeared", disappeared)
	return now
}

func (w *wrapped) logEach(message string, ids []string) {
	slices.Sort(ids)
	for _, id := range ids {
		w.log.Info(message, "id", text.Truncate(id, maxLoggedID))
	}
}

// maxLoggedID bounds the bytes of a device's id in the log.
const maxLoggedID = 256

func equal(a, b discovery.Device) bool {
	return maps.Equal(a.Properties, b.Properties) && slices.Equal(a.Mounts, b.Mounts) && slices.Equal(a.DeviceSpecs, b.DeviceSpecs)
}
