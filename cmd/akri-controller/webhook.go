package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"akri.sh/akri/controller/kinds"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/internal/version"
	"akri.sh/akri/webhook"
	"akri.sh/akri/webhook/certs"
	"akri.sh/akri/webhook/server"
)

// webhookName is the argument that selects the command.
const webhookName = "webhook"

const webhookUsage = `Usage: akri-controller webhook [flags]

Serves the admission webhook that validates Akri's Configurations before they are
stored. Every replica serves. Except for its certificate, it writes nothing.

Set the --allow-... flags as for the controller and the agents: the webhook denies
what the controller would refuse to create, and agents to read.
`

// webhookCommand runs the admission webhook.
type webhookCommand struct {
	address   string
	certDir   string
	secret    string
	handlers  bool
	unchecked []string
	clientCA  string
	foreign   bool
	addresses addressFlags
	policy    policyFlags
}

func (c *webhookCommand) register(set *pflag.FlagSet) {
	set.StringVar(&c.address, "bind-address", ":9443", "`address` that serves the webhook")
	set.StringVar(&c.certDir, "cert-dir", "/run/akri/webhook", "`directory` of the webhook's tls.crt and tls.key, if --cert-secret is not set")
	set.StringVar(&c.secret, "cert-secret", "", "Secret, as `NAMESPACE/NAME`, in which the webhook creates, stores and renews its "+
		"certificate; the Service "+certs.ServiceName+" is in the same namespace. If not set, "+
		"provide a certificate in --cert-dir, and its CA and the path "+certs.Path+" in the ValidatingWebhookConfiguration "+
		certs.RegistrationName)
	set.BoolVar(&c.handlers, "authorize-discovery-handlers", false, "require the verb use on discoveryhandlers.akri.sh/NAME of the "+
		"authors of Configurations for the discovery handler NAME")
	set.StringSliceVar(&c.unchecked, "skip-details-of", nil, "comma-separated `names` of built-in discovery handlers whose "+
		"discoveryDetails are not checked, because the cluster has other handlers of these names")
	set.BoolVar(&c.foreign, "allow-cross-namespace-properties", false, "admit discoveryProperties that refer to Secrets and ConfigMaps "+
		"outside their Configuration's namespace; set it if the agents have this flag, too")
	set.StringVar(&c.clientCA, "client-ca", "", "`file` with the CA of the client certificate that the API server presents to webhooks; "+
		"connections without such a certificate are refused. If not set, none is required")
	c.addresses.register(set)
	c.policy.register(set)
}

// serve runs the webhook.
func (c *webhookCommand) serve(ctx context.Context, api *rest.Config) error {
	options, err := c.serverOptions()
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(api, manager.Options{
		Scheme:                  scheme,
		Cache:                   webhook.CacheOptions(),
		Metrics:                 metricsserver.Options{BindAddress: c.addresses.metrics},
		HealthProbeBindAddress:  c.addresses.probes,
		GracefulShutdownTimeout: new(10 * time.Second),
	})
	if err != nil {
		return unreachable(api, err)
	}
	mapper, err := kinds.New(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	if err := mapper.Watch(ctx, mgr.GetCache(), nil); err != nil {
		return err
	}
	validators, err := builtin.Without(c.unchecked)
	if err != nil {
		return fmt.Errorf("--skip-details-of: %w", err)
	}
	chain, err := webhook.NewChain(webhook.Options{
		Config:     mgr.GetConfig(),
		Live:       mgr.GetAPIReader(),
		Mapper:     mapper,
		Policy:     c.policy.policy(),
		RequireUse: c.handlers,
		Details:    validators,

		CrossNamespaceProperties: c.foreign,
	})
	if err != nil {
		return fmt.Errorf("set up the admission webhook: %w", err)
	}
	served, err := server.Add(ctx, mgr, options, webhook.Handler(chain))
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", served.Ready); err != nil {
		return fmt.Errorf("add the webhook's readiness check: %w", err)
	}
	if err := registerWebhookMetrics(metrics.Registry, served); err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	return start(ctx, mgr)
}

// registerWebhookMetrics registers the metrics of the webhook in addition to those of
// controller-runtime.
func registerWebhookMetrics(to prometheus.Registerer, served *server.Server) error {
	return errors.Join(to.Register(version.NewCollector("webhook")), to.Register(served))
}

func (c *webhookCommand) serverOptions() (server.Options, error) {
	options := server.Options{Address: c.address, Dir: c.certDir, ClientCA: c.clientCA}
	if c.secret != "" {
		namespace, name, found := strings.Cut(c.secret, "/")
		if !found || namespace == "" || name == "" {
			return options, fmt.Errorf("--cert-secret=%s: write NAMESPACE/NAME", c.secret)
		}
		options.Secret = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return options, nil
}
