package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/migration"
)

type migrateCleanOptions struct {
	access
	dryRun, yes bool
}

func newMigrateClean(streams cli.Streams) *cobra.Command {
	var o migrateCleanOptions
	command := &cobra.Command{
		Use:   "clean",
		Short: "Remove what the original Akri has left, after a move",
		Long: `Remove what the original Akri has left, after a move: finalizers and field managers of
its agents, its stopped workloads, their ServiceAccounts and roles, its webhook, and
Helm's record of it. Discovery handlers stay.

The command lists what it will remove, and asks. ServiceAccounts, roles and bindings
that others use are kept: the list says who uses them. The command refuses to start
while the original still runs, or this Akri is not ready, on a node that is Ready.
Repeat it when the others are back.`,
		Example: `  kubectl akri migrate clean --dry-run
  kubectl akri migrate clean`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command.Context(), streams) },
	}
	o.addClusterFlags(command)
	command.Flags().BoolVar(&o.dryRun, "dry-run", false, "only list what would be removed")
	command.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	return command
}

func (o *migrateCleanOptions) run(ctx context.Context, streams cli.Streams) error {
	api, facts, err := o.survey(ctx, streams)
	if err != nil {
		return err
	}
	if len(facts.Unread) > 0 {
		return cli.Failed(fmt.Errorf("%s: %s: use an account that may read them", facts.Unread[0].What, facts.Unread[0].Why))
	}
	actions, err := migration.Clean(facts)
	if err != nil {
		return err
	}
	for _, action := range actions {
		fmt.Fprintln(streams.Out, action)
	}
	actions = slices.DeleteFunc(actions, func(action migration.Action) bool { return action.Keep })
	if len(actions) == 0 {
		_, err := fmt.Fprintln(streams.Out, "The original Akri has left nothing.")
		return err
	}
	if o.dryRun {
		return nil
	}
	if !o.yes {
		fmt.Fprintf(streams.Err, "Remove these %d? [y/N] ", len(actions))
		answer, _ := bufio.NewReader(streams.In).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return errors.New("nothing was removed: answer y, or use --yes")
		}
	}
	for _, action := range actions {
		if err := api.remove(ctx, action); err != nil {
			return fmt.Errorf("%s: %w", action, err)
		}
	}
	_, err = fmt.Fprintf(streams.Out, "%d removed\n", len(actions))
	return err
}

// remove does one action. What is gone already is no error.
func (c *cluster) remove(ctx context.Context, action migration.Action) error {
	mapping, err := c.mapper.ResourceFor(schema.ParseGroupResource(action.Object.Resource).WithVersion(""))
	if err != nil {
		return err
	}
	var objects dynamic.ResourceInterface = c.dynamic.Resource(mapping)
	if action.Object.Namespace != "" {
		objects = c.dynamic.Resource(mapping).Namespace(action.Object.Namespace)
	}
	if action.Traces == nil {
		background := metav1.DeletePropagationBackground
		err := objects.Delete(ctx, action.Object.Name, metav1.DeleteOptions{PropagationPolicy: &background})
		return ignoreGone(err)
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		return edit(ctx, objects, action)
	})
}

// edit removes traces of Akri's agents from an object. Agents write to Instances at any
// time, so the patch is only for the version that was read.
func edit(ctx context.Context, objects dynamic.ResourceInterface, action migration.Action) error {
	live, err := objects.Get(ctx, action.Object.Name, metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	action.Traces.Remove(live)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": live.GetResourceVersion(), "finalizers": live.GetFinalizers(), "managedFields": live.GetManagedFields(),
	}})
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
