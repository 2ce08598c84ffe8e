// Command akri-controller creates and maintains the Kubernetes objects that
// Configurations describe. Its command webhook serves the admission webhook for
// Configurations; check checks an installation; pre-delete, pre-rollback and post-install
// are hooks of the chart. All run in a cluster, or outside it with a kubeconfig.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller"
	"akri.sh/akri/internal/garbage"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/version"
)

// command is one of the processes that the executable can be.
type command interface {
	// register adds the command's flags to a set.
	register(set *pflag.FlagSet)
	// serve runs the command until ctx is done.
	serve(ctx context.Context, api *rest.Config) error
}

// burst is how much the controller and the webhook allocate before memory is returned.
const burst = 16 << 20

func main() {
	garbage.Limit()
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "akri-controller:", err)
		os.Exit(1)
	}
}

// run executes the command that the first argument names, and otherwise the controller.
func run(ctx context.Context, args []string) error {
	commands := map[string]struct {
		command
		usage string
	}{
		webhookName: {&webhookCommand{}, webhookUsage}, checkName: {&checkCommand{}, checkUsage},
		preDeleteName: {&preDeleteCommand{}, preDeleteUsage}, preRollbackName: {&preRollbackCommand{}, preRollbackUsage},
		postInstallName: {&postInstallCommand{}, postInstallUsage},
	}
	if len(args) > 0 {
		if c, found := commands[args[0]]; found {
			return execute(ctx, c.command, c.usage, args[1:])
		}
	}
	return execute(ctx, &controllerCommand{}, controllerUsage, args)
}

// usageOfAll is what the usage of each command ends with.
const usageOfAll = `
It finds the API server through --kubeconfig, the variable KUBECONFIG, the
ServiceAccount of its Pod, or ~/.kube/config, in this order.

Flags:
%s`

// execute parses the flags of a command and runs it.
func execute(ctx context.Context, c command, usage string, args []string) error {
	set := pflag.NewFlagSet("akri-controller", pflag.ContinueOnError)
	set.SortFlags = false
	set.Usage = func() { fmt.Printf("%s"+usageOfAll, usage, set.FlagUsagesWrapped(100)) }
	c.register(set)
	logging := zap.Options{}
	libraries := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(libraries) // --kubeconfig
	logging.BindFlags(libraries)
	set.AddGoFlagSet(libraries)
	showVersion := set.Bool("version", false, "print the version and exit")
	if err := set.Parse(args); err != nil {
		return err
	}
	if *showVersion {
		fmt.Println(version.Line("akri-controller"))
		return nil
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see akri-controller --help", set.Arg(0))
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	api, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w: set --kubeconfig or KUBECONFIG", err)
	}
	// The API server's priority and fairness limits our requests. A limit on this
	// side would only hide load from it.
	api.QPS = -1
	// The API server compresses each watch event separately. Within a cluster that
	// costs both sides more than it saves.
	api.DisableCompression = true
	return c.serve(ctx, api)
}

// newScheme returns a scheme with Akri's kinds.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register Akri's kinds: %w", err)
	}
	return scheme, nil
}

// newClient returns a client for Akri's kinds, and for others as unstructured objects.
func newClient(api *rest.Config) (client.Client, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(api, client.Options{Scheme: scheme})
	if err != nil {
		return nil, unreachable(api, err)
	}
	return c, nil
}

// unreachable returns the error for an API server to which there is no connection.
func unreachable(api *rest.Config, err error) error {
	return fmt.Errorf("connect to the API server %s: %w", api.Host, err)
}

// start adds to a manager what both commands need, and runs it until ctx is done.
func start(ctx context.Context, mgr manager.Manager) error {
	ctrl.Log.Info("Starting", "version", version.String())
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", controller.Ready(mgr)); err != nil {
		return fmt.Errorf("add the readiness check: %w", err)
	}
	release := func(ctx context.Context) error {
		garbage.Release(ctx, burst)
		return nil
	}
	if err := mgr.Add(controller.EveryReplica(release)); err != nil {
		return fmt.Errorf("add the release of memory: %w", err)
	}
	verify := func(ctx context.Context) error {
		return kubeversion.Verify(ctx, mgr.GetConfig(), slog.New(logr.ToSlogHandler(ctrl.Log.WithName("kubernetes"))))
	}
	if err := mgr.Add(controller.EveryReplica(verify)); err != nil {
		return fmt.Errorf("add the check of the API server's version: %w", err)
	}
	return mgr.Start(ctx)
}
