package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

const (
	agentNamespace = "akri-system"
	agentName      = "akri-agent" // value of the label app.kubernetes.io/name
	// maxForwards is the number of agents that are read at the same time.
	maxForwards = 8
)

type nodesOptions struct {
	access
	port    int
	timeout time.Duration
	output  string
}

func newNodes(streams cli.Streams) *cobra.Command {
	var o nodesOptions
	command := &cobra.Command{
		Use:   "nodes [NODE]",
		Short: "Show the agents: handlers, devices, slots and errors by node",
		Long: `Show the agents: handlers, devices, slots and errors by node.

The state is read from the agents' debug endpoint by port-forward. You need permission
to list Pods and to create pods/portforward in the namespace of the agents. An agent
that cannot be read is shown with the reason.`,
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
	flags := command.Flags()
	flags.IntVar(&o.port, "port", debug.Port, "`port` of the agents' debug endpoint, as in their flag --debug-address")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for an agent")
	flags.StringVarP(&o.output, "output", "o", "", "output `format`: json or yaml")
	return command
}

func (o *nodesOptions) run(ctx context.Context, streams cli.Streams, names []string) error {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	reports, err := api.agents(ctx, o.namespace, names)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		api.noteWithout(ctx, streams, reports)
	}
	var reading errgroup.Group
	reading.SetLimit(maxForwards)
	for i := range reports {
		if reports[i].Problem == "" {
			reading.Go(func() error { o.read(ctx, config, &reports[i]); return nil })
		}
	}
	_ = reading.Wait() // problems are in the reports
	switch {
	case o.output != "":
		return printAs(streams, o.output, reports)
	case len(names) > 0:
		return view.Node(streams.Out, reports[0], time.Now())
	}
	return view.Nodes(streams.Out, reports, time.Now())
}

// agents returns a report without a state for each agent's Pod, or for that of one
// node, sorted by node. Those that cannot be read have a problem.
func (c *cluster) agents(ctx context.Context, namespace string, names []string) ([]view.NodeReport, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": agentName}); err != nil {
		return nil, fmt.Errorf("list the agents' Pods: %w", err)
	}
	latest := map[string]*corev1.Pod{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		node := cmp.Or(pod.Spec.NodeName, assignedNode(pod))
		if known := latest[node]; known == nil || newer(pod, known) {
			latest[node] = pod
		}
	}
	if len(latest) == 0 {
		return nil, fmt.Errorf("no agents in namespace %q: specify the namespace in which Akri is installed with -n", namespace)
	}
	var reports []view.NodeReport
	for node, pod := range latest {
		if len(names) == 0 || node == names[0] {
			reports = append(reports, view.NodeReport{Node: node, Namespace: namespace, Pod: pod.Name, Problem: podProblem(pod)})
		}
	}
	if len(reports) == 0 {
		return nil, fmt.Errorf("no agent on node %q: the node does not exist, or the DaemonSet %s does not tolerate its taints",
			names[0], agentName)
	}
	slices.SortFunc(reports, func(a, b view.NodeReport) int { return cmp.Compare(a.Node, b.Node) })
	return reports, nil
}

// noteWithout names the nodes without an agent, if the user may list nodes. They can be
// intended.
func (c *cluster) noteWithout(ctx context.Context, streams cli.Streams, reports []view.NodeReport) {
	var nodes corev1.NodeList
	if c.List(ctx, &nodes) != nil {
		return // they are additional information
	}
	const maxNames = 5
	var without []string
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if slices.ContainsFunc(reports, func(report view.NodeReport) bool { return report.Node == node.Name }) {
			continue
		}
		name := node.Name
		if !isReady(node) {
			name += " (not ready)"
		}
		without = append(without, name)
	}
	if len(without) == 0 {
		return
	}
	shown := strings.Join(without[:min(len(without), maxNames)], ", ")
	if more := len(without) - maxNames; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(streams.Err, "note: no agent runs on %s; the DaemonSet's nodeSelector or the nodes' taints exclude them\n", shown)
}

// isReady reports whether a node's kubelet reports that it works. A node that is not ready
// has taints for it.
func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// assignedNode returns the node that the DaemonSet controller chose for a Pod that is
// not scheduled yet, or "".
func assignedNode(pod *corev1.Pod) string {
	affinity := pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// newer reports whether the first of two Pods of a node replaces the second.
func newer(pod, known *corev1.Pod) bool {
	terminated := func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed }
	if terminated(pod) != terminated(known) {
		return !terminated(pod)
	}
	return known.CreationTimestamp.Before(&pod.CreationTimestamp)
}

// podProblem returns the reason why the agent of a Pod cannot be read, or "".
func podProblem(pod *corev1.Pod) string {
	if pod.Status.Phase == corev1.PodRunning {
		return ""
	}
	return fmt.Sprintf("Pod %s is %s", pod.Name, view.PodState(pod))
}

// read reads the state of one agent.
func (o *nodesOptions) read(ctx context.Context, config *rest.Config, report *view.NodeReport) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("%s have passed", o.timeout))
	defer cancel()
	pod := client.ObjectKey{Namespace: report.Namespace, Name: report.Pod}
	body, err := getForwarded(ctx, config, pod, o.port, debug.Path)
	if err == nil {
		report.State = &debug.State{}
		err = json.Unmarshal(body, report.State)
	}
	if err != nil {
		report.State, report.Problem = nil, readProblem(err, o.port)
	}
}

// readProblem explains the error of a port-forward.
func readProblem(err error, port int) string {
	switch message := err.Error(); {
	case isRefused(err):
		return fmt.Sprintf("the agent does not listen on port %d: it is starting, or has another --debug-address (see --port)", port)
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return message
	}
}

// isRefused reports whether nothing listens on the port of a port-forward. The kubelet
// sends its error as text.
func isRefused(err error) bool { return strings.Contains(err.Error(), "connection refused") }

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
