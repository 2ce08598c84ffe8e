package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

const agentName = "akri-agent" // value of the label app.kubernetes.io/name

func newNodes(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "nodes [NODE]",
		Short: "Show the agents: readiness, devices, slots and failures by node",
		Long: `Show the agents: readiness, devices, slots and failures by node.

The command reads everything from the API server: Akri's Pods, Deployments and DaemonSets,
Nodes, Instances, and the status of Configurations. A note says what you may not list, and
what Akri itself lacks, with the remedy. The command looks for Akri in all namespaces, or
else in akri-system, whatever the kubeconfig says, unless you name a namespace with -n.`,
		Example: `  kubectl akri nodes        # a line per node
  kubectl akri nodes node1  # all about one node`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.completion(&corev1.NodeList{}),
		RunE: func(command *cobra.Command, args []string) error {
			return a.showNodes(command.Context(), streams, output, args)
		},
	}
	output.AddFlag(command)
	return command
}

func (a access) showNodes(ctx context.Context, streams cli.Streams, output cli.Output, names []string) error {
	api, err := a.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	facts, err := api.facts.Nodes(ctx, a.flags.Context.Namespace, api.namespace)
	notes := facts.Unread
	defer func() { printNotes(streams, notes) }()
	if err != nil {
		return err
	}
	for _, problem := range facts.Problems(view.Controller, view.Agent, view.Webhook) {
		notes = append(notes, problem.Cause+"\n  → "+problem.Hint)
	}
	reports := facts.Reports()
	if len(names) > 0 {
		reports = slices.DeleteFunc(reports, func(r view.NodeReport) bool { return r.Node != names[0] })
		if len(reports) == 0 {
			return fmt.Errorf("node %q: it has no agent and no device: check the name with kubectl get nodes", names[0])
		}
	}
	return output.Print(streams.Out, reports, func(out io.Writer) error {
		if len(names) > 0 {
			return view.Node(out, &reports[0])
		}
		return view.Nodes(out, reports)
	})
}
