package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.Dir, "discovery-handlers-dir",
		cmp.Or(environment("DISCOVERY_HANDLERS_DIRECTORY"), discovery.DefaultDir),
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

// command describes the command of a handler.
type command struct {
	use, short, manual string
	// onNetwork means that several nodes see the same devices, unless --shared is false.
	onNetwork bool
	// flags adds flags that only this handler has; may be nil.
	flags func(flags *pflag.FlagSet)
	// handler returns the handler that the flags describe.
	handler func() (embeddable.Handler, error)
}

// commands are those of the handlers.
var commands = []func(environment func(string) string) command{
	debugEchoCommand, httpCommand, mdnsCommand, mqttCommand, onvifCommand, opcuaCommand, udevCommand,
}

func (c command) cobra(environment func(string) string) *cobra.Command {
	var serve serveFlags
	cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.manual, Args: cobra.NoArgs}
	if c.flags != nil {
		c.flags(cmd.Flags())
	}
	serve.add(cmd, environment)
	if c.onNetwork {
		cmd.Flags().BoolVar(&serve.options.Shared, "shared", true,
			"whether several nodes see the same devices; set it to false if each node has a network of its own, "+
				"so that an equal address on two nodes is two devices")
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		handler, err := c.handler()
		if err != nil {
			return err
		}
		if !c.onNetwork {
			serve.options.Shared = handler.Shared
		}
		return serve.serve(cmd, handler)
	}
	return cmd
}

// serve serves a handler until the command's context ends.
func (f *serveFlags) serve(cmd *cobra.Command, what embeddable.Handler) error {
	name := cmp.Or(f.name, what.Name)
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
	handler := metrics.Wrap(what.New(metrics, f.options.Logger), f.options.Logger)
	if f.options.Static { // the agents of all nodes send the same requests
		handler = coalesce.Wrap(handler)
	}
	return discovery.Serve(cmd.Context(), name, handler, f.options)
}
