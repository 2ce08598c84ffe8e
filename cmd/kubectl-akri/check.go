package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/finding"
)

func newCheck(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "check",
		Short: "Check the installation, with a remedy for each problem",
		Long: `Check the installation, with a remedy for each problem: the kinds, the webhook, the
controller, the agents of all nodes and their kubelets, the handlers, the Configurations,
and your permissions. The exit code is 1 if a check fails. Nothing is changed: the webhook
gets a dry run, in the namespace of -n. The command looks for Akri in all namespaces, or in
akri-system if you may not list all.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := a.connect(streams.Err, nil)
			if err != nil {
				return err
			}
			checks := api.check(command.Context())
			err = output.Print(streams.Out, checks, checks.Text)
			if err == nil && slices.ContainsFunc(checks, func(check view.Check) bool { return len(check.Problems) > 0 }) {
				err = cli.Exit(1)
			}
			return err
		},
	}
	output.AddFlag(command)
	return command
}

// check makes all checks, also after one has failed.
func (c *cluster) check(ctx context.Context) view.Checks {
	version, err := c.serverVersion(ctx)
	found, unread := c.facts.Nodes(ctx, "", c.namespace)
	if err = cmp.Or(err, unread); err != nil {
		return view.Checks{{Name: "cluster", Problems: []finding.Mistake{{Cause: err.Error(),
			Hint: "if kinds of Akri do not exist, install its CustomResourceDefinitions, as docs/quickstart.md says"}}}}
	}
	checks := view.Checks{{Name: "cluster", Right: "Kubernetes " + version + " serves Akri's kinds"}, c.checkWebhook(ctx, found)}
	permissions := view.Check{Name: "permissions", Right: "yours are enough for these checks"}
	for _, note := range found.Unread {
		permissions.Problems = append(permissions.Problems, finding.Mistake{Cause: note})
	}
	return append(append(checks, found.Check()...), permissions)
}

// checkWebhook sends a Configuration that the webhook has to refuse. An installation may be without one.
func (c *cluster) checkWebhook(ctx context.Context, found *view.NodeFacts) view.Check {
	invalid := v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "akri-check"}}
	invalid.Spec.DiscoveryHandler = v0.DiscoveryHandler{Name: "debugEcho", DiscoveryDetails: "descriptions: 1"}
	err := c.Create(ctx, &invalid, client.DryRunAll)
	right, problems := "refuses an invalid Configuration", found.Problems(view.Webhook)
	switch {
	case err == nil && found.Searched && !found.Has(view.Webhook):
		right = "not part of this installation"
	case err == nil:
		problems = append(problems, finding.Mistake{Cause: "An invalid Configuration is accepted.",
			Hint: "install Akri again, with its ValidatingWebhookConfiguration, unless the namespace is exempt: docs/admission.md"})
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "discoveryDetails"):
		right = "not tried, because you may not create Configurations in " + facts.Where(c.namespace) + "; -n chooses another"
	case !strings.Contains(err.Error(), "discoveryDetails"):
		problems = append(problems, finding.Mistake{Cause: "An invalid Configuration is refused for another reason: " + err.Error(),
			Hint: "AkriWebhookUnreachable in docs/runbooks.md"})
	}
	return view.Check{Name: "webhook", Right: right, Problems: problems}
}
