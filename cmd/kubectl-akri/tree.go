package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

type treeOptions struct {
	access
}

func newTree(streams cli.Streams) *cobra.Command {
	var o treeOptions
	command := &cobra.Command{
		Use:   "tree [CONFIGURATION]",
		Short: "Show Configurations with their devices, slots and objects",
		Example: `  kubectl akri tree                  # in the current namespace
  kubectl akri tree -A               # in all namespaces
  kubectl akri tree akri-debug-echo  # one Configuration`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&v0.ConfigurationList{}),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), streams, args)
		},
	}
	o.addFlags(command)
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show all namespaces")
	return command
}

func (o *treeOptions) run(ctx context.Context, streams cli.Streams, names []string) error {
	namespace, err := o.selectedNamespace()
	if err != nil {
		return err
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	var configurations v0.ConfigurationList
	if err := api.List(ctx, &configurations, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Configurations: %w", err)
	}
	var instances v0.InstanceList
	if err := api.List(ctx, &instances, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list Instances: %w", err)
	}
	chosen := configurations.Items
	if len(names) > 0 {
		chosen = slices.DeleteFunc(chosen, func(c v0.Configuration) bool { return c.Name != names[0] })
		if len(chosen) == 0 {
			return fmt.Errorf("no Configuration %q in %s", names[0], where(namespace))
		}
	}
	if len(chosen) == 0 {
		fmt.Fprintf(streams.Err, "No Configurations in %s.\n", where(namespace))
		return nil
	}
	slices.SortFunc(chosen, func(a, b v0.Configuration) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(instances.Items, func(a, b v0.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return view.Tree(streams.Out, chosen, instances.Items)
}
