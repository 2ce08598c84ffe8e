package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/internal/kubeversion"
	"akri.sh/akri/internal/version"
)

type versionOptions struct {
	access
	clientOnly bool
	check      bool
	output     cli.Output
}

func newVersion(streams cli.Streams, a access) *cobra.Command {
	o := versionOptions{access: a}
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of all parts, and whether they differ",
		Long: `Show the versions of kubectl-akri, Kubernetes, the controller, each replica of the
webhook, and the agents and handlers of each node with their kubelets. If a version differs
from the controller's, the command says so, and what to do about it. It also names the
features that Akri lacks in this version of Kubernetes.

The version of a Pod is the tag of its image, or its label app.kubernetes.io/version. The
command looks for Akri in all namespaces, or else in akri-system, whatever the kubeconfig
says, unless you name a namespace with -n. A note says what you may not list; kubelets are
shown if you may list nodes.`,
		Example: `  kubectl akri version
  kubectl akri version --check  # exit with 1 if versions differ or are unknown`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), streams)
		},
	}
	o.output.AddFlag(command)
	flags := command.Flags()
	flags.BoolVar(&o.clientOnly, "client", false, "show only the version of kubectl-akri; needs no cluster")
	flags.BoolVar(&o.check, "check", false, "exit with 1 if versions differ, or one is unknown")
	return command
}

func (o *versionOptions) run(ctx context.Context, streams cli.Streams) error {
	versions := &view.Versions{Client: version.Get(), Namespace: o.flags.Context.Namespace}
	var failure error
	if !o.clientOnly {
		failure = o.readCluster(ctx, streams, versions)
	}
	if err := o.output.Print(streams.Out, versions, versions.Text); err != nil {
		return err
	}
	if failure == nil && o.check && !versions.Healthy() {
		return cli.Exit(1)
	}
	return failure
}

// readCluster adds the versions in the cluster. It fails if there is no cluster.
func (o *versionOptions) readCluster(ctx context.Context, streams cli.Streams, to *view.Versions) error {
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	if to.Kubernetes, err = api.serverVersion(ctx); err != nil {
		return err
	}
	system, err := api.facts.System(ctx, to.Namespace)
	printNotes(streams, system.Unread)
	if err != nil {
		return err
	}
	to.Namespace = cmp.Or(to.Namespace, facts.Namespace)
	for _, problem := range system.Problems(view.Controller, view.Agent, view.Webhook) {
		to.Notes = append(to.Notes, problem.Cause)
	}
	kubelets := map[string]string{} // they are additional information
	for i := range system.Nodes {
		kubelets[system.Nodes[i].Name] = system.Nodes[i].Status.NodeInfo.KubeletVersion
	}
	for i := range system.Pods {
		if system.Pods[i].DeletionTimestamp != nil || view.Terminated(&system.Pods[i]) {
			continue
		}
		to.Parts = append(to.Parts, partOf(&system.Pods[i], kubelets))
	}
	if lack := kubeversion.Lacking(to.Kubernetes); lack != "" {
		to.Notes = append(to.Notes, lack)
	}
	to.Judge()
	return nil
}

func (c *cluster) serverVersion(ctx context.Context) (string, error) {
	info, err := c.kinds.ServerVersionWithContext(ctx)
	if err != nil {
		return "", fmt.Errorf("read the version of the API server %s: %w", c.config.Host, err)
	}
	return info.GitVersion, nil
}

// partOf returns what a Pod tells about its program.
func partOf(pod *corev1.Pod, kubelets map[string]string) view.Part {
	part := view.Part{
		Component: view.ComponentOf(pod.Labels), Pod: pod.Name, Node: pod.Spec.NodeName, Kubelet: kubelets[pod.Spec.NodeName],
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
