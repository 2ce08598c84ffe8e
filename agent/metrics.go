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
		"Instances that list this node, by Configuration.", []string{"namespace", "configuration", "is_shared"}, nil)
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
	type kind struct {
		namespace, configuration string
		shared                   bool
	}
	kinds := map[kind]int{}
	for _, instance := range c.instances.All() {
		kinds[kind{instance.Namespace, instance.Spec.ConfigurationName, instance.Spec.Shared}]++
	}
	for k, count := range kinds {
		to <- prometheus.MustNewConstMetric(instancesDescription, prometheus.GaugeValue, float64(count),
			k.namespace, k.configuration, strconv.FormatBool(k.shared))
	}
}

func newMetrics() *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("agent"))
	return metrics
}

// metricsHandler serves /metrics.
func metricsHandler(metrics *prometheus.Registry, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}))
	return mux
}

// probeHandler serves /healthz and /readyz. Everybody who reaches the Pod can read what
// alive and ready return.
func probeHandler(alive, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", answer(alive))
	mux.Handle("GET /readyz", answer(ready))
	return mux
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

// serve serves a handler at the address of a flag until ctx is done, unless it is turned off.
func serve(ctx context.Context, flag, address string, handler http.Handler) error {
	if address == "" || address == "0" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w: free the port, or set the flag to another one or to 0", flag, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { server.Close() })
	defer stopped()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}
