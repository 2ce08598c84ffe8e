package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/selfcheck"
)

func newCheck(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "check",
		Short: "Check the installation, with a remedy for each problem",
		Long: `Check the installation, with a remedy for each problem: the kinds are served, the webhook
refuses an invalid Configuration and accepts a valid one, the controller and the handlers
run, the agents of all nodes are ready, the kubelets know the devices, Configurations have
no error, and you may read all that.

Nothing is changed: the webhook gets dry runs, in your namespace. Akri is searched in all
namespaces, or else in akri-system, whatever the kubeconfig says, unless you give another
with -n. helm test also checks that a device comes and goes.

The exit code is 0 if all is right, and 1 if a check fails.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := a.connect(streams.Err, nil)
			if err != nil {
				return err
			}
			checks, err := api.check(command.Context(), a.flags.Context.Namespace)
			if err == nil {
				err = output.Print(streams.Out, checks, checks.Text)
			}
			if failed := checks.Failed(); err == nil && failed > 0 {
				err = fmt.Errorf("%d of %d checks failed", failed, len(checks))
			}
			return err
		},
	}
	output.AddFlag(command)
	return command
}

// check makes all checks, also after one has failed.
func (c *cluster) check(ctx context.Context, namespace string) (checks view.Checks, err error) {
	version, err := c.serverVersion(ctx)
	if err != nil {
		return nil, err
	}
	checks.Add("kinds", "Kubernetes "+version+" serves Configurations and Instances",
		mistakes(cmp.Or(kubeversion.Check(version), selfcheck.Kinds(c.kinds)), ""))
	if len(checks[0].Problems) > 0 {
		return checks, nil // nothing else can be asked for
	}
	facts, err := c.nodeFacts(ctx, namespace)
	if err != nil {
		return nil, err
	}
	c.checkWebhook(ctx, facts, &checks)
	facts.Check(&checks)
	var missing []finding.Mistake
	for _, note := range c.notes {
		missing = append(missing, finding.Mistake{Cause: note})
	}
	checks.Add("permissions", "yours are enough for these checks", missing)
	return checks, nil
}

// checkWebhook checks the admission webhook. An installation can be without one.
func (c *cluster) checkWebhook(ctx context.Context, facts *view.NodeFacts, checks *view.Checks) {
	const remedy = "if the API server does not reach it, check NetworkPolicies, firewalls and its certificate: AkriWebhookUnreachable in " +
		"docs/runbooks.md"
	err := selfcheck.Webhook(ctx, c, c.namespace)
	switch broken := facts.Problems(view.Webhook); {
	case len(broken) > 0:
		checks.Add("webhook", "", broken)
	case apierrors.IsForbidden(err):
		checks.Skip("webhook", "you may not create Configurations in "+where(c.namespace)+" (the ClusterRole akri-edit permits it)")
	case errors.Is(err, selfcheck.ErrNotAdmitted) && facts.Searched && !facts.Has(view.Webhook):
		checks.Skip("webhook", "not part of this installation")
	default:
		checks.Add("webhook", "refuses an invalid Configuration and accepts a valid one", mistakes(err, remedy))
	}
}

// mistakes returns an error with its remedy, or with another if it has none.
func mistakes(err error, remedy string) []finding.Mistake {
	mistake, is := errors.AsType[finding.Mistake](err)
	switch {
	case err == nil:
		return nil
	case !is:
		mistake = finding.Mistake{Cause: err.Error(), Hint: remedy}
	}
	return []finding.Mistake{mistake}
}
