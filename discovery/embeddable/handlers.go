package embeddable

import (
	"log/slog"
	"net/netip"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/mdns/browse"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/onvif"
	"akri.sh/akri/discovery/opcua"
	"akri.sh/akri/discovery/udev"
)

// Handler describes a handler that has not been created yet.
type Handler struct {
	// Name of the handler in Configurations.
	Name string
	// Shared means that several nodes see the same devices.
	Shared bool
	// New creates the handler, which counts its scans and failures in the metrics.
	New func(metrics *monitor.Metrics, log *slog.Logger) discovery.Handler
}

// DebugEcho returns the handler debugEcho. The devices disappear while the availability
// file contains OFFLINE; without a name it is the default.
func DebugEcho(shared bool, availabilityFile string) Handler {
	return Handler{Name: debugecho.Name, Shared: shared, New: func(*monitor.Metrics, *slog.Logger) discovery.Handler {
		return debugecho.Handler{AvailabilityFile: availabilityFile}
	}}
}

// ONVIF returns the handler onvif.
func ONVIF() Handler {
	return Handler{Name: onvif.Name, Shared: true, New: func(metrics *monitor.Metrics, log *slog.Logger) discovery.Handler {
		return onvif.Handler{Metrics: metrics, Logger: log}
	}}
}

// OPCUA returns the handler opcua. Configurations may scan the networks.
func OPCUA(scanNetworks []netip.Prefix) Handler {
	return Handler{Name: opcua.Name, Shared: true, New: func(metrics *monitor.Metrics, log *slog.Logger) discovery.Handler {
		return opcua.New(opcua.Options{
			ScanNetworks: scanNetworks, Browser: browse.New(browse.Options{Logger: log, Failed: metrics.Failed}), Metrics: metrics, Log: log,
		})
	}}
}

// UDEV returns the handler udev, with the options except their Metrics.
func UDEV(options udev.Options) Handler {
	return Handler{Name: udev.Name, New: func(metrics *monitor.Metrics, _ *slog.Logger) discovery.Handler {
		options.Metrics = metrics
		return udev.New(options)
	}}
}
