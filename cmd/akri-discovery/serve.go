package main

import (
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/coalesce"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/internal/garbage"
	"akri.sh/akri/internal/version"
)

// serveFlags are the flags of every handler.
type serveFlags struct {
	options discovery.Options
	// metrics and probes are the addresses that serve them; "0" for none.
	metrics string
	probes  string
	level   string
	tls     tlsFiles
	// name replaces the handler's usual name.
	name string
}

func (f *serveFlags) add(cmd *cobra.Command, environment func(string) string) {
	dir := environment("DISCOVERY_HANDLERS_DIRECTORY")
	if dir == "" {
		dir = discovery.DefaultDir
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.Dir, "discovery-handlers-dir", dir,
		"directory of the agent's and this handler's sockets (DISCOVERY_HANDLERS_DIRECTORY)")
	flags.StringVar(&f.options.Host, "pod-ip", environment("POD_IP"),
		"listen on this address, which the agent must reach, instead of a socket in the directory (POD_IP)")
	flags.IntVar(&f.options.Port, "port", discovery.DefaultPort, "port to listen on; only with --pod-ip")
	flags.StringVar(&f.name, "name", "",
		"name of this handler in Configurations; set it if the cluster has another handler with the usual name")
	flags.BoolVar(&f.options.Static, "static", false,
		"do not register, because the agents know this handler from --static-handlers; only with --pod-ip")
	f.tls.add(flags)
	flags.StringVar(&f.metrics, "metrics-bind-address", "0", "address that serves /metrics, without authentication; 0 turns it off")
	flags.StringVar(&f.probes, "health-probe-bind-address", "0", "address that serves /healthz and /readyz; 0 turns it off")
	flags.StringVar(&f.level, "log-level", "info", "minimum level to log: debug, info, warn or error")
}

// addShared adds the flag of handlers of devices on a network.
func (f *serveFlags) addShared(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.Shared, "shared", true,
		"whether several nodes see the same devices; set it to false if each node has a network of its own, "+
			"so that an equal address on two nodes is two devices")
}

// serve serves a handler until the command's context ends. create receives the metrics
// in which the handler counts its scans and failures.
func (f *serveFlags) serve(cmd *cobra.Command, name string, create func(*monitor.Metrics) discovery.Handler) error {
	if f.name != "" {
		name = f.name
	}
	var minimum slog.Level
	if err := minimum.UnmarshalText([]byte(f.level)); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", f.level)
	}
	f.options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: minimum}))
	slog.SetDefault(f.options.Logger)
	var err error
	if f.options.TLS, err = f.tls.config(f.options.Host != ""); err != nil {
		return err
	}
	var registered atomic.Bool
	f.options.OnRegistration = registered.Store
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("discovery"))
	metrics := monitor.New(registry)
	stopMetrics, err := serveHTTP("--metrics-bind-address", f.metrics, metricsHandler(registry))
	if err != nil {
		return err
	}
	defer stopMetrics()
	stopProbes, err := serveHTTP("--health-probe-bind-address", f.probes, probeHandler(registered.Load))
	if err != nil {
		return err
	}
	defer stopProbes()
	garbage.Limit()
	f.options.Logger.Info("Handler started", "handler", name, "version", version.String())
	handler := metrics.Wrap(create(metrics), f.options.Logger)
	if f.options.Static { // the agents of all nodes send the same requests
		handler = coalesce.Wrap(handler)
	}
	return discovery.Serve(cmd.Context(), name, handler, f.options)
}

// serveEmbeddable serves a handler that agents can run as well.
func (f *serveFlags) serveEmbeddable(cmd *cobra.Command, handler embeddable.Handler) error {
	return f.serve(cmd, handler.Name, func(metrics *monitor.Metrics) discovery.Handler {
		return handler.New(metrics, f.options.Logger)
	})
}

// boolOf parses a flag whose default is an environment variable.
func boolOf(flag, variable, text string) (bool, error) {
	switch value, err := strconv.ParseBool(text); {
	case text == "":
		return false, fmt.Errorf("--%s is not set: set it, or the environment variable %s, to true or false", flag, variable)
	case err != nil:
		return false, fmt.Errorf("--%s (%s) is %q: want true or false", flag, variable, text)
	default:
		return value, nil
	}
}
