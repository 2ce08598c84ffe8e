package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/migration"
)

// pullInterval is the time between two looks at the Pods that pull images.
const pullInterval = time.Second

type migratePullOptions struct {
	access
	timeout time.Duration
}

func newMigratePull(streams cli.Streams) *cobra.Command {
	var o migratePullOptions
	command := &cobra.Command{
		Use:   "pull",
		Short: "Pull the images of manifests on all nodes, before Akri is stopped",
		Long: `Read manifests from stdin, and pull the images of their DaemonSets on all nodes that
they select, and all other images on one node. A Pod on each node runs the programs
with --version. The Pods are deleted at the end; the namespace is created if it does
not exist.

The exit code is 0 if all images can be pulled and run, and 1 if one cannot. Nodes that
are not ready are named and skipped.`,
		Example: `  helm template akri bin/akri-1.2.3.tgz -n akri-system | kubectl akri migrate pull
  kubectl kustomize my-akri | kubectl akri migrate pull`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams) },
	}
	o.addClusterFlags(command)
	command.Flags().StringVarP(&o.namespace, "namespace", "n", agentNamespace, "`namespace` of the Pods, which has the pull secrets")
	command.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "`duration` after which the command fails")
	return command
}

func (o *migratePullOptions) run(ctx context.Context, streams cli.Streams) error {
	manifests, err := io.ReadAll(streams.In)
	if err != nil {
		return cli.Failed(fmt.Errorf("read the manifests: %w", err))
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return cli.Failed(err)
	}
	var nodes corev1.NodeList
	if err := api.List(ctx, &nodes); err != nil {
		return cli.Failed(fmt.Errorf("list Nodes: %w", err))
	}
	pods, skipped, err := migration.Pulls(string(manifests), nodes.Items, o.namespace)
	for _, node := range skipped {
		fmt.Fprintf(streams.Err, "note: node %s is not ready, and is skipped\n", node)
	}
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	pullErr := api.pull(bounded, pods, o.namespace)
	if err := api.deletePulls(context.WithoutCancel(ctx), o.namespace); err != nil {
		return errors.Join(pullErr, err)
	}
	if pullErr != nil {
		return fmt.Errorf("%w\nNothing of Akri was changed. Push the images, or correct the registry, the tag or the pull secrets", pullErr)
	}
	for _, pod := range pods {
		for _, container := range pod.Spec.Containers {
			fmt.Fprintf(streams.Out, "%s  %s\n", pod.Spec.NodeName, container.Image)
		}
	}
	return nil
}

// pull creates Pods that pull images, and waits until all have.
func (c *cluster) pull(ctx context.Context, pods []corev1.Pod, namespace string) error {
	err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create the namespace %s: %w", namespace, err)
	}
	if err := c.deletePulls(ctx, namespace); err != nil { // of a run that was killed
		return err
	}
	for i := range pods {
		if err := c.createPull(ctx, &pods[i]); err != nil {
			return fmt.Errorf("create a Pod on node %s: %w", pods[i].Spec.NodeName, err)
		}
	}
	waiting := "no Pod"
	err = wait.PollUntilContextCancel(ctx, pullInterval, true, func(ctx context.Context) (bool, error) {
		waiting = ""
		for i := range pods {
			if err := c.Get(ctx, client.ObjectKeyFromObject(&pods[i]), &pods[i]); err != nil {
				return false, err
			}
			pulled, err := migration.Pulled(&pods[i])
			if err != nil {
				return false, err
			}
			if !pulled {
				waiting = pods[i].Spec.NodeName
			}
		}
		return waiting == "", nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("node %s has not pulled its images in time: %w", waiting, ctx.Err())
	}
	return err
}

// createPull creates a Pod. In a new namespace, it is refused until its ServiceAccount
// exists.
func (c *cluster) createPull(ctx context.Context, pod *corev1.Pod) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pullInterval, true, func(ctx context.Context) (bool, error) {
		last = c.Create(ctx, pod)
		if apierrors.IsForbidden(last) {
			var account corev1.ServiceAccount
			key := client.ObjectKey{Namespace: pod.Namespace, Name: "default"}
			if err := c.Get(ctx, key, &account); apierrors.IsNotFound(err) {
				return false, nil
			}
		}
		return true, last
	})
	if last != nil {
		return last
	}
	return err
}

// deletePulls deletes the Pods that pull images.
func (c *cluster) deletePulls(ctx context.Context, namespace string) error {
	err := c.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels(migration.PullLabels))
	if err != nil {
		return fmt.Errorf("delete the Pods that pull images: %w", err)
	}
	return nil
}
