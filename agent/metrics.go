package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/internal/version"
)

var (
	handlersDescription = prometheus.NewDesc("akri_discovery_handlers",
		"Endpoints of discovery handlers on this node, by handler and state.", []string{"discovery_handler_name", "state"}, nil)
	instancesDescription = prometheus.NewDesc("akri_instance_count",
		"Instances with this node, by Configuration.", []string{"namespace", "configuration", "is_shared"}, nil)
)

// collector computes gauges from the current handlers and Instances.
type collector struct {
	handlers  *registry.Registry
	instances *instances.Store
}

func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- handlersDescription
	to <- instancesDescription
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	counts := map[string]map[registry.State]int{}
	for _, status := range c.handlers.Snapshot() {
		if counts[status.Name] == nil {
			counts[status.Name] = map[registry.State]int{}
		}
		counts[status.Name][status.State]++
	}
	for name, states := range counts {
		for _, state := range registry.States {
			to <- prometheus.MustNewConstMetric(handlersDescription, prometheus.GaugeValue, float64(states[state]), name, string(state))
		}
	}
	for configuration, kinds := range c.instances.Count() {
		for shared, count := range kinds {
			to <- prometheus.MustNewConstMetric(instancesDescription, prometheus.GaugeValue, float64(count),
				configuration.Namespace, configuration.Name, strconv.FormatBool(shared))
		}
	}
}

func newMetrics() *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("agent"))
	return metrics
}

// serveMetrics serves /metrics, /healthz and /readyz until ctx is done.
func serveMetrics(
	ctx context.Context, listener net.Listener, metrics *prometheus.Registry, alive, ready func() error, log *slog.Logger,
) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}))
	mux.Handle("GET /healthz", answer(alive))
	mux.Handle("GET /readyz", answer(ready))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}

// answer returns a handler that answers with the result of a check.
func answer(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// listenMetrics listens on the metrics address. It returns nil if metrics are off.
func listenMetrics(address string) (net.Listener, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w: free the port, or set --metrics-bind-address to another one or to 0", err)
	}
	return listener, nil
}
