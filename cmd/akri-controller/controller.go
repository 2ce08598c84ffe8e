package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"akri.sh/akri/controller"
	"akri.sh/akri/controller/nodes"
)

const controllerUsage = `Usage:
  akri-controller [flags]                run the controller
  akri-controller webhook [flags]        serve the admission webhook; see akri-controller webhook --help
  akri-controller check [flags]          check an installation; see akri-controller check --help
  akri-controller pre-delete [flags]     delete the Configurations of a Helm release before it is uninstalled
  akri-controller pre-rollback [flags]   keep the Configurations of a Helm release that a rollback would delete
  akri-controller post-install [flags]   apply the Configurations of a Helm release that was installed

The controller creates and maintains the Kubernetes objects that Akri's
Configurations describe, and cleans up after lost nodes.
`

// leaderLease is the name of the Lease that the leader holds.
const leaderLease = "akri-controller"

// controllerCommand runs the controller.
type controllerCommand struct {
	leaderElect          bool
	leaderElectNamespace string
	addresses            addressFlags
	workers              int
	nodeGrace            time.Duration
	sweepInterval        time.Duration
	policy               policyFlags
}

func (c *controllerCommand) register(set *pflag.FlagSet) {
	set.BoolVar(&c.leaderElect, "leader-elect", true, "elect a leader, so that only one of several replicas works at a time")
	set.StringVar(&c.leaderElectNamespace, "leader-elect-namespace", "",
		"`namespace` of the Lease for leader election (default: the Pod's own; \"default\" outside a cluster)")
	c.addresses.register(set)
	set.IntVar(&c.workers, "workers", 4, "maximum number of Instances, and of Configurations, of one namespace "+
		"that are reconciled concurrently; one more worker is for other namespaces")
	set.DurationVar(&c.nodeGrace, "node-grace", nodes.DefaultNotReadyGrace,
		"`duration` that a node may be NotReady before it is removed from the Instances that no Pod on it uses; 0: never")
	set.DurationVar(&c.sweepInterval, "sweep-interval", time.Hour,
		"`interval` between searches for stray objects that garbage collection does not cover; 0: never")
	c.policy.register(set)
}

// serve runs the controller.
func (c *controllerCommand) serve(ctx context.Context, api *rest.Config) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	namespace := c.leaderElectNamespace
	if _, inCluster := os.LookupEnv("KUBERNETES_SERVICE_HOST"); namespace == "" && !inCluster {
		namespace = "default"
	}
	mgr, err := ctrl.NewManager(api, manager.Options{
		Scheme:                        scheme,
		Cache:                         controller.CacheOptions(),
		LeaderElection:                c.leaderElect,
		LeaderElectionID:              leaderLease,
		LeaderElectionNamespace:       namespace,
		LeaderElectionReleaseOnCancel: true, // nothing runs after the manager has stopped
		// A leader that cannot renew its Lease exits. The single API server of an
		// edge cluster may take longer than the default 10 s to restart. The
		// price: a killed leader is replaced only after LeaseDuration.
		LeaseDuration:           new(20 * time.Second),
		RenewDeadline:           new(15 * time.Second),
		Metrics:                 server.Options{BindAddress: c.addresses.metrics},
		HealthProbeBindAddress:  c.addresses.probes,
		GracefulShutdownTimeout: new(10 * time.Second),
	})
	if err != nil {
		return unreachable(api, err)
	}
	if err := controller.Setup(ctx, mgr, controller.Options{
		Workers:    c.workers,
		NodeGrace:  c.nodeGrace,
		SweepEvery: c.sweepInterval,
		Metrics:    metrics.Registry,
		Policy:     c.policy.policy(),
	}); err != nil {
		return err
	}
	return start(ctx, mgr)
}
