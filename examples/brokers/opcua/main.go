// Opcua is a broker for OPC UA servers: it reads a value and exports it as a metric.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

const manual = `opcua is a broker for OPC UA servers. It reads a numeric value of one server and
serves:

  /metrics  the value as a metric for Prometheus, with the server and the node as
            labels, and opcua_up, which is 1 while the value can be read
  /healthz  200 while the broker runs
  /readyz   200 while the value can be read

It reads its settings from the environment:

  OPCUA_DISCOVERY_URL     the server, as Akri sets it in containers that request a
                          device
  OPCUA_APPLICATION_NAME  the server's name, for the label; also set by Akri
  OPCUA_NODE_ID           the default of --node

It connects without credentials and without encryption.

Flags:
`

// minInterval is the shortest time between two reads.
const minInterval = 100 * time.Millisecond

// metricName matches names that Prometheus accepts.
var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// options are the settings of the command line and the environment.
type options struct {
	listen, metric string
	interval       time.Duration
	url, server    string
	node           *ua.NodeID
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	o, err := parse(os.Args[1:], os.Getenv, os.Stdout)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "opcua:", err)
		os.Exit(1)
	}
}

// parse reads the command line and the environment.
func parse(arguments []string, environment func(string) string, help io.Writer) (options, error) {
	o := options{url: environment("OPCUA_DISCOVERY_URL"), server: environment("OPCUA_APPLICATION_NAME")}
	var node string
	flags := flag.NewFlagSet("opcua", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&node, "node", environment("OPCUA_NODE_ID"), "`ID` of the node to read, such as ns=1;s=temperature")
	flags.StringVar(&o.metric, "metric", "opcua_value", "`name` of the metric")
	flags.StringVar(&o.listen, "listen", ":8080", "`address` to serve at")
	flags.DurationVar(&o.interval, "interval", 2*time.Second, "`time` between two reads")
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(help, manual)
		flags.SetOutput(help)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, err
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: there are only flags, see opcua --help", flags.Arg(0))
	case o.url == "":
		return o, errors.New("OPCUA_DISCOVERY_URL is not set: request a server in the container's resources, so that Akri sets it")
	case node == "":
		return o, errors.New("--node is not set: set it, or OPCUA_NODE_ID, to the ID of a node, such as ns=1;s=temperature")
	case !metricName.MatchString(o.metric):
		return o, fmt.Errorf("--metric: %q is not a name of a metric: use letters, digits and underscores", o.metric)
	case o.interval < minInterval:
		return o, fmt.Errorf("--interval: %v is too short: use at least %v", o.interval, minInterval)
	}
	if o.node, err = ua.ParseNodeID(node); err != nil {
		return o, fmt.Errorf("--node: %q is not the ID of a node: use one such as ns=1;s=temperature or i=2258", node)
	}
	return o, nil
}

// run reads the value and serves it until ctx is done.
func run(ctx context.Context, o options) error {
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	g := newGauge(o.metric, o.server, o.node.String())
	registry := prometheus.NewRegistry()
	registry.MustRegister(g)
	server := &http.Server{Handler: routes(g, registry), ReadHeaderTimeout: 5 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		slog.Info("Serving a value", "address", listener.Addr().String(), "server", o.url, "node", o.node.String())
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	group.Go(func() error {
		poll(ctx, o, g)
		return nil
	})
	return group.Wait()
}

// routes returns what the broker serves.
func routes(g *gauge, registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := g.get(); !ok {
			http.Error(w, "the value cannot be read", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}
