// Command akri-controller makes and keeps the Kubernetes objects that
// Configurations ask for. It runs in a cluster, or outside it with a kubeconfig.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/nodes"
)

const usage = `Usage: akri-controller [flags]

Makes and keeps the Kubernetes objects that Akri's Configurations ask for.

It finds the API server by --kubeconfig, else by the variable KUBECONFIG, else
as a pod by its service account, else by ~/.kube/config.

Flags:
%s`

// leaderLease is the name of the Lease by which one of several controllers
// leads.
const leaderLease = "akri-controller"

type flags struct {
	leaderElect          bool
	leaderElectNamespace string
	metricsAddress       string
	probeAddress         string
	workers              int
	nodeGrace            time.Duration
	sweepInterval        time.Duration
	clusterScoped        bool
	otherNamespaces      bool
	kinds                []string
	webhook              webhookFlags
}

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "akri-controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var f flags
	set := pflag.NewFlagSet("akri-controller", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() { fmt.Printf(usage, set.FlagUsages()) }
	set.BoolVar(&f.leaderElect, "leader-elect", true, "let one of several controllers work at a time")
	set.StringVar(&f.leaderElectNamespace, "leader-elect-namespace", "", "`namespace` of the Lease by which they agree (default: the pod's own; outside a cluster \"default\")")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8080", "`address` that serves /metrics; 0 turns it off")
	set.StringVar(&f.probeAddress, "health-probe-bind-address", ":8081", "`address` that serves /healthz and /readyz; 0 turns it off")
	set.IntVar(&f.workers, "workers", 4, "how many Instances, and how many Configurations, are worked on at the same time")
	set.DurationVar(&f.nodeGrace, "node-grace", nodes.DefaultNotReadyGrace, "`duration` that a node may be not Ready before it is taken off the Instances that it does not use; 0: never")
	set.DurationVar(&f.sweepInterval, "sweep-interval", time.Hour, "`interval` of looking for objects that neither garbage collection nor a Configuration knows of any more; 0: never")
	set.BoolVar(&f.clusterScoped, "allow-cluster-scoped", false, "let Configurations make objects that have no namespace")
	set.BoolVar(&f.otherNamespaces, "allow-other-namespaces", false, "let Configurations make objects outside their own namespace")
	set.StringSliceVar(&f.kinds, "allow-kinds", nil, "let Configurations make objects of these `KIND.GROUP`s, such as Role.rbac.authorization.k8s.io, which are refused otherwise since they give power over the cluster")
	f.webhook.register(set)
	logging := zap.Options{}
	libraries := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(libraries) // --kubeconfig
	logging.BindFlags(libraries)
	set.AddGoFlagSet(libraries)
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see akri-controller --help", set.Arg(0))
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	api, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w: set --kubeconfig or KUBECONFIG", err)
	}
	return serve(ctx, api, f)
}

func serve(ctx context.Context, api *rest.Config, f flags) error {
	// The API server's own fairness governs; a limit here would only hide load
	// from it.
	api.QPS = -1
	// API servers compress each event of a watch by itself, which costs both sides
	// more than sending it within a cluster.
	api.DisableCompression = true

	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register our kinds: %w", err)
	}
	namespace := f.leaderElectNamespace
	if _, pod := os.LookupEnv("KUBERNETES_SERVICE_HOST"); namespace == "" && !pod {
		namespace = "default"
	}
	mgr, err := ctrl.NewManager(api, manager.Options{
		Scheme:                        scheme,
		Cache:                         controller.CacheOptions(),
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              leaderLease,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // nothing is done after the manager has stopped
		// Whoever cannot renew its lease ends, and its webhook with it: an API
		// server that restarts, alone as at the edge, needs longer than the usual
		// ten seconds at times. Who is killed is missed for a lease's time.
		LeaseDuration:           new(20 * time.Second),
		RenewDeadline:           new(15 * time.Second),
		Metrics:                 server.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress:  f.probeAddress,
		GracefulShutdownTimeout: new(10 * time.Second),
	})
	if err != nil {
		return fmt.Errorf("connect to the API server %s: %w", api.Host, err)
	}
	options := controller.Options{
		Workers:    f.workers,
		NodeGrace:  f.nodeGrace,
		SweepEvery: f.sweepInterval,
		Metrics:    metrics.Registry,
		Policy:     confine.Policy{ClusterScoped: f.clusterScoped, OtherNamespaces: f.otherNamespaces},
	}
	for _, kind := range f.kinds {
		options.Policy.Kinds = append(options.Policy.Kinds, schema.ParseGroupKind(kind))
	}
	if err := controller.Setup(ctx, mgr, options); err != nil {
		return err
	}
	if err := f.webhook.add(mgr, options.Policy); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	ready, err := controller.Ready(mgr)
	if err != nil {
		return fmt.Errorf("set up the readiness check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", ready); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(giveBack)); err != nil {
		return fmt.Errorf("add the return of memory: %w", err)
	}
	return mgr.Start(ctx)
}
