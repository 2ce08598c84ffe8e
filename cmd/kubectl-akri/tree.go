package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/view"
)

type treeOptions struct {
	kubeconfig    string
	context       string
	namespace     string
	allNamespaces bool
}

func newTree(out io.Writer) *cobra.Command {
	var o treeOptions
	command := &cobra.Command{
		Use:   "tree [CONFIGURATION]",
		Short: "Show Configurations with their devices, slots and objects",
		Example: `  kubectl akri tree                  # those of the current namespace
  kubectl akri tree -A               # all
  kubectl akri tree akri-debug-echo  # one`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return o.run(command.Context(), out, args)
		},
	}
	command.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: KUBECONFIG, else ~/.kube/config)")
	command.Flags().StringVar(&o.context, "context", "", "`name` of the context in it")
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "", "`namespace` to look into (default: the context's)")
	command.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "look into all namespaces")
	return command
}

func (o *treeOptions) run(ctx context.Context, out io.Writer, names []string) error {
	api, namespace, err := o.connect()
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
			return fmt.Errorf("there is no Configuration %q in %s", names[0], where(namespace))
		}
	}
	if len(chosen) == 0 {
		fmt.Fprintf(out, "No Configurations in %s.\n", where(namespace))
		return nil
	}
	slices.SortFunc(chosen, func(a, b v0.Configuration) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(instances.Items, func(a, b v0.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return view.Tree(out, chosen, instances.Items)
}

func (o *treeOptions) connect() (client.Client, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace := o.namespace
	if namespace == "" && !o.allNamespaces {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", fmt.Errorf("read the kubeconfig: %w", err)
		}
	}
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		return nil, "", fmt.Errorf("register our kinds: %w", err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	return api, namespace, nil
}

func where(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return fmt.Sprintf("namespace %q", namespace)
}
