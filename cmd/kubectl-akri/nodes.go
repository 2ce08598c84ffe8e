package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

const (
	agentNamespace = "akri-system"
	agentName      = "akri-agent" // value of the label app.kubernetes.io/name
)

func newNodes(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "nodes [NODE]",
		Short: "Show the agents: readiness, devices, slots and failures by node",
		Long: `Show the agents: readiness, devices, slots and failures by node.

All of it is in the API server: the agents' Pods, Nodes, Instances, and the status of
Configurations. You need permission to list Pods in the namespace of the agents, and
Instances and Configurations in all namespaces. Nodes that have neither an agent nor a
device are shown if you may list Nodes. The namespace of the agents is akri-system,
whatever the kubeconfig says, unless you give another with -n.`,
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
	facts, err := api.nodeFacts(ctx, a.systemNamespace())
	if err != nil {
		return err
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

// nodeFacts reads what tells about the agents in a namespace.
func (c *cluster) nodeFacts(ctx context.Context, namespace string) (*view.NodeFacts, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": agentName}); err != nil {
		return nil, fmt.Errorf("list the agents' Pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, fmt.Errorf("no agents in namespace %q: specify the namespace in which Akri is installed with -n", namespace)
	}
	var instances v0.InstanceList
	if err := c.List(ctx, &instances); err != nil {
		return nil, fmt.Errorf("list Instances: %w", err)
	}
	var configurations v0.ConfigurationList
	if err := c.List(ctx, &configurations); err != nil {
		return nil, fmt.Errorf("list Configurations: %w", err)
	}
	var nodes corev1.NodeList
	_ = c.List(ctx, &nodes) // they are additional information
	return &view.NodeFacts{Pods: pods.Items, Nodes: nodes.Items, Instances: instances.Items, Configurations: configurations.Items}, nil
}
