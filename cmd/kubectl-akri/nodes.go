package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

const (
	agentNamespace = "akri-system"
	agentName      = "akri-agent" // value of the label app.kubernetes.io/name
)

type nodesOptions struct {
	access
	output string
}

func newNodes(streams cli.Streams) *cobra.Command {
	var o nodesOptions
	command := &cobra.Command{
		Use:   "nodes [NODE]",
		Short: "Show the agents: readiness, devices, slots and failures by node",
		Long: `Show the agents: readiness, devices, slots and failures by node.

All of it is in the API server: the agents' Pods, Nodes, Instances, and the status of
Configurations. You need permission to list Pods in the namespace of the agents, and
Instances and Configurations in all namespaces. Nodes that have neither an agent nor a
device are shown if you may list Nodes.`,
		Example: `  kubectl akri nodes        # a line per node
  kubectl akri nodes node1  # all about one node`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&corev1.NodeList{}),
		RunE: func(command *cobra.Command, args []string) error {
			if o.output != "" && o.output != "json" && o.output != "yaml" {
				return cli.Usage(command, fmt.Errorf("-o %s: use json or yaml", o.output))
			}
			return o.run(command.Context(), streams, args)
		},
	}
	o.addFlags(command)
	o.defaultToSystemNamespace(command, "`namespace` of the agents")
	command.Flags().StringVarP(&o.output, "output", "o", "", "output `format`: json or yaml")
	return command
}

func (o *nodesOptions) run(ctx context.Context, streams cli.Streams, names []string) error {
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	facts, err := api.nodeFacts(ctx, o.namespace)
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
	switch {
	case o.output != "":
		return printAs(streams, o.output, reports)
	case len(names) > 0:
		return view.Node(streams.Out, &reports[0])
	}
	return view.Nodes(streams.Out, reports)
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

func printAs(streams cli.Streams, format string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err == nil && format == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write as %s: %w", format, err)
	}
	_, err = fmt.Fprintln(streams.Out, strings.TrimSuffix(string(text), "\n"))
	return err
}
