package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/version"
)

type versionOptions struct {
	access
	clientOnly bool
	check      bool
	output     string
}

func newVersion(streams cli.Streams) *cobra.Command {
	var o versionOptions
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of all parts, and whether they differ",
		Long: `Show the versions of kubectl-akri, Kubernetes, the controller, each replica of the
webhook, and the agents and handlers of each node with their kubelets. What is older
than the rest is named, with what to do about it, and what Akri does without in this
version of Kubernetes.

The version of a Pod is the tag of its image, or its label app.kubernetes.io/version.
You need permission to list Pods in the namespace. Kubelets are shown if you may list
nodes.`,
		Example: `  kubectl akri version
  kubectl akri version --check  # exit with 1 if versions differ or are unknown`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.output != "" && o.output != "json" && o.output != "yaml" {
				return cli.Usage(command, fmt.Errorf("-o %s: use json or yaml", o.output))
			}
			return o.run(command.Context(), streams)
		},
	}
	o.addFlags(command)
	o.defaultToSystemNamespace(command, "`namespace` in which Akri is installed")
	flags := command.Flags()
	flags.BoolVar(&o.clientOnly, "client", false, "show only the version of kubectl-akri; needs no cluster")
	flags.BoolVar(&o.check, "check", false, "exit with 1 if versions differ, or one is unknown")
	flags.StringVarP(&o.output, "output", "o", "", "output `format`: json or yaml")
	return command
}

// defaultToSystemNamespace makes Akri's own namespace the default of a command.
func (a *access) defaultToSystemNamespace(command *cobra.Command, usage string) {
	flag := command.Flags().Lookup("namespace")
	flag.Usage, flag.DefValue = usage, agentNamespace
	a.namespace = agentNamespace
}

func (o *versionOptions) run(ctx context.Context, streams cli.Streams) error {
	versions := &view.Versions{Client: version.Get(), Namespace: o.namespace}
	var failure error
	if !o.clientOnly {
		if failure = o.readCluster(ctx, streams, versions); failure == nil {
			versions.Judge()
		}
	}
	if o.output != "" {
		if err := printAs(streams, o.output, versions); err != nil {
			return err
		}
	} else if err := view.PrintVersions(streams.Out, versions); err != nil {
		return err
	}
	if failure == nil && o.check && !versions.Healthy() {
		return cli.Exit(1)
	}
	return failure
}

// readCluster adds the versions in the cluster. It fails if there is no cluster.
func (o *versionOptions) readCluster(ctx context.Context, streams cli.Streams, to *view.Versions) error {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	if to.Kubernetes, err = serverVersion(ctx, config); err != nil {
		return err
	}
	pods, err := api.systemPods(ctx, to.Namespace)
	if err != nil {
		return err
	}
	kubelets := map[string]string{}
	var nodes corev1.NodeList
	if api.List(ctx, &nodes) == nil { // they are additional information
		for i := range nodes.Items {
			kubelets[nodes.Items[i].Name] = nodes.Items[i].Status.NodeInfo.KubeletVersion
		}
	}
	var ofAgents []string
	for i := range pods {
		part := partOf(&pods[i], kubelets)
		to.Parts = append(to.Parts, part)
		if part.Component == view.Agent {
			ofAgents = append(ofAgents, part.Kubelet)
		}
	}
	to.Lacking = kubeversion.Lacking(to.Kubernetes, ofAgents...)
	return nil
}

func serverVersion(ctx context.Context, config *rest.Config) (string, error) {
	server, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	body, err := server.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("read the version of the API server %s: %w", config.Host, err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("read the version of the API server %s: %w", config.Host, err)
	}
	return info.GitVersion, nil
}

// systemPods lists the Pods of the controller, the webhook, the agents and the handlers
// that have not terminated.
func (c *cluster) systemPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list the Pods of Akri: %w", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		terminated := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if componentOf(pod.Labels) != "" && !terminated {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// componentOf returns the component that an object with these labels belongs to, or the
// name of a handler, or "".
func componentOf(labels map[string]string) string {
	name := labels["app.kubernetes.io/name"]
	switch name {
	case "akri-controller":
		return view.Controller
	case "akri-webhook":
		return view.Webhook
	case agentName:
		return view.Agent
	}
	if handler, found := strings.CutSuffix(name, "-discovery"); found && labels["app.kubernetes.io/part-of"] == "akri" {
		return strings.TrimPrefix(handler, "akri-")
	}
	return ""
}

// partOf returns what a Pod tells about its program.
func partOf(pod *corev1.Pod, kubelets map[string]string) view.Part {
	part := view.Part{
		Component: componentOf(pod.Labels), Pod: pod.Name, Node: pod.Spec.NodeName, Kubelet: kubelets[pod.Spec.NodeName],
		Image: view.ImageOf(pod), Version: view.VersionOf(pod),
	}
	switch {
	case pod.Status.Phase != corev1.PodRunning:
		part.Problem = fmt.Sprintf("Pod %s is %s", pod.Name, view.PodState(pod))
	case part.Version == "":
		part.Problem = fmt.Sprintf("the version is unknown: the image %s has no version as its tag", part.Image)
	}
	return part
}
