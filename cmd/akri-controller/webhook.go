package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"akri.sh/akri/controller/confine"
	"akri.sh/akri/discovery/debugecho/details"
	"akri.sh/akri/webhook"
)

// webhookFlags say whether and how the admission webhook is served.
type webhookFlags struct {
	address string
	folder  string
	secret  string
}

func (f *webhookFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.address, "webhook-bind-address", "0", "`address` that serves the admission webhook, such as :9443; 0 turns it off")
	set.StringVar(&f.folder, "webhook-cert-dir", "/run/akri/webhook", "`folder` of the webhook's tls.crt and tls.key")
	set.StringVar(&f.secret, "webhook-secret", "", "Secret, as `NAMESPACE/NAME`, in which the webhook's certificate is made, kept and renewed; the Service "+webhook.ServiceName+" is in the same namespace. Not set: somebody else puts a certificate into --webhook-cert-dir, and its authority into the webhook's registration")
}

// validators know the discoveryDetails of the handlers that come with Akri.
var validators = map[string]func(discoveryDetails string) error{
	"debugEcho": details.Validate,
}

// add adds the webhook to the manager. policy is the controller's own.
func (f *webhookFlags) add(mgr manager.Manager, policy confine.Policy) error {
	if f.address == "0" || f.address == "" {
		return nil
	}
	if f.folder == "" {
		return errors.New("--webhook-cert-dir is empty: name a folder that can be written to")
	}
	var secret types.NamespacedName
	if f.secret != "" {
		namespace, name, found := strings.Cut(f.secret, "/")
		if !found || namespace == "" || name == "" {
			return fmt.Errorf("--webhook-secret=%s: write NAMESPACE/NAME", f.secret)
		}
		secret = types.NamespacedName{Namespace: namespace, Name: name}
	}
	chain, err := webhook.NewChain(webhook.Options{
		Config:    mgr.GetConfig(),
		Live:      mgr.GetAPIReader(),
		Instances: mgr.GetCache(),
		Mapper:    mgr.GetRESTMapper(),
		Policy:    policy,
		Details:   validators,
	})
	if err != nil {
		return fmt.Errorf("set up the admission webhook: %w", err)
	}
	ready, err := webhook.Serve(mgr, webhook.ServerOptions{Address: f.address, Folder: f.folder, Secret: secret}, chain)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhook", ready); err != nil {
		return fmt.Errorf("add the webhook's readiness check: %w", err)
	}
	return nil
}
