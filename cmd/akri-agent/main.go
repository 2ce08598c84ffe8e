// Akri-agent finds the devices of one node and offers them to its kubelet.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"akri.sh/akri/agent"
	"akri.sh/akri/internal/garbage"
	"akri.sh/akri/internal/version"
)

const usage = `akri-agent finds the devices of one node, publishes them as Instances, and offers
them to the kubelet. It runs on every node.

Discovery handlers register at agent-registration.sock in --discovery-handlers-dir.
They run in Pods of their own, or in the agent's process with --embedded-handlers.
Without --kubeconfig and KUBECONFIG it uses the Pod's service account.

Usage:
  akri-agent [flags]

Flags (environment variables in parentheses are their defaults):
%s`

// burst is how much the agent allocates before memory is returned: some twenty devices.
const burst = 1 << 20

func main() {
	garbage.Limit()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr); {
	case errors.Is(err, pflag.ErrHelp), errors.Is(err, errVersion):
	case err != nil:
		fmt.Fprintln(os.Stderr, "akri-agent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, environment func(string) string, stdout, stderr io.Writer) error {
	options, err := parse(arguments, environment, stdout, stderr)
	if err != nil {
		return err
	}
	go garbage.Release(ctx, burst)
	return agent.Run(ctx, options)
}

// errVersion reports that the version was printed, and nothing else is to be done.
var errVersion = errors.New("the version was requested")

func parse(arguments []string, environment func(string) string, stdout, stderr io.Writer) (agent.Options, error) {
	first := func(fallback string, variables ...string) string {
		for _, variable := range variables {
			if value := environment(variable); value != "" {
				return value
			}
		}
		return fallback
	}
	var options agent.Options
	var kubeconfig, level, format string
	flags := pflag.NewFlagSet("akri-agent", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprintf(stdout, usage, flags.FlagUsagesWrapped(100)) }
	flags.StringVar(&options.NodeName, "node-name", first("", "NODE_NAME", "AGENT_NODE_NAME"),
		"name of this node in the API server (NODE_NAME or AGENT_NODE_NAME); required")
	flags.StringVar(&options.HandlersDir, "discovery-handlers-dir", first("/var/lib/akri", "DISCOVERY_HANDLERS_DIRECTORY"),
		"directory in which discovery handlers register and listen (DISCOVERY_HANDLERS_DIRECTORY)")
	flags.StringVar(&options.KubeletDir, "kubelet-dir", "/var/lib/kubelet",
		"the kubelet's root directory")
	flags.StringVar(&kubeconfig, "kubeconfig", first("", "KUBECONFIG"),
		"kubeconfig file for the API server (KUBECONFIG); default: the Pod's service account")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", metricsAddress(first),
		"address of /metrics, which is not authenticated; 0 turns it off (METRICS_PORT sets the port)")
	flags.StringVar(&options.ProbeAddress, "health-probe-bind-address", ":8081",
		"address of /healthz and /readyz; 0 turns them off")
	flags.BoolVar(&options.AllowCrossNamespaceProperties, "allow-cross-namespace-properties", false,
		"allow discoveryProperties to refer to Secrets and ConfigMaps outside their Configuration's namespace")
	embeddedFlag(flags, &options, environment)
	handlerFlags(flags, &options)
	flags.StringVar(&level, "log-level", "info", "minimum level to log: debug, info, warn or error")
	showVersion := flags.Bool("version", false, "print the version and exit")
	flags.StringVar(&format, "log-format", "text", "log format: text or json")
	if err := flags.Parse(arguments); err != nil {
		return options, err
	}
	if *showVersion {
		fmt.Fprintln(stdout, version.Line("akri-agent"))
		return options, errVersion
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q: use flags only, see --help", flags.Arg(0))
	}
	var err error
	if options.Logger, err = newLogger(stderr, level, format); err != nil {
		return options, err
	}
	klog.SetSlogLogger(options.Logger) // used by client-go
	slog.SetDefault(options.Logger)
	options.Config, err = restConfig(kubeconfig)
	return options, err
}

func metricsAddress(first func(string, ...string) string) string {
	return "127.0.0.1:" + first("8080", "METRICS_PORT")
}

func newLogger(to io.Writer, level, format string) (*slog.Logger, error) {
	var minimum slog.Level
	if err := minimum.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	options := &slog.HandlerOptions{Level: minimum}
	switch strings.ToLower(format) {
	case "text":
		return slog.New(slog.NewTextHandler(to, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(to, options)), nil
	}
	return nil, fmt.Errorf("--log-format %q: want text or json", format)
}

// restConfig returns the configuration of the client. It has no client-side rate
// limit: the API server uses API Priority and Fairness.
func restConfig(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig != "" {
		rules := &clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(kubeconfig, string(os.PathListSeparator))}
		config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
		}
	} else if config, err = rest.InClusterConfig(); err != nil {
		return nil, fmt.Errorf("configure the API server client: %w: outside a Pod, use --kubeconfig or KUBECONFIG", err)
	}
	config.QPS = -1
	config.UserAgent = "akri-agent"
	return config, nil
}
