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

// endpoint is a handler and the address at which it is served.
type endpoint struct {
	listener net.Listener
	server   *http.Server
}

type endpoints []endpoint

// listen listens at the addresses of the metrics and of the probes that are not turned off.
func (a *parts) listen(options Options) (endpoints, error) {
	var all endpoints
	for _, e := range []struct {
		flag, address string
		handler       http.Handler
	}{
		{"--metrics-bind-address", options.MetricsAddress, metricsHandler(a.metrics, options.Logger)},
		{"--health-probe-bind-address", options.ProbeAddress, probeHandler(a.health.Check, a.ready)},
	} {
		if e.address == "" || e.address == "0" {
			continue
		}
		listener, err := net.Listen("tcp", e.address)
		if err != nil {
			all.close()
			return nil, fmt.Errorf("%s: %w: free the port, or set the flag to another one or to 0", e.flag, err)
		}
		all = append(all, endpoint{listener, &http.Server{Handler: e.handler, ReadHeaderTimeout: 5 * time.Second}})
	}
	return all, nil
}

// close releases the addresses.
func (all endpoints) close() {
	for _, e := range all {
		e.listener.Close()
	}
}

// serve serves the endpoint until ctx is done.
func (e endpoint) serve(ctx context.Context) error {
	stopped := context.AfterFunc(ctx, func() { e.server.Close() })
	defer stopped()
	if err := e.server.Serve(e.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", e.listener.Addr(), err)
	}
	return nil
}
