package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/templates"
)

// exitDiffers is the exit code of kubectl diff if there are differences.
const exitDiffers = 1

type diffOptions struct {
	access
	files  []string
	policy confine.Policy
	kinds  []string
}

func newDiff(streams cli.Streams) *cobra.Command {
	var o diffOptions
	command := &cobra.Command{
		Use:   "diff (-f FILE... | CONFIGURATION)",
		Short: "Show what applying a Configuration would change in the cluster",
		Long: `Show what applying a Configuration would change in the cluster.

With -f, the Configuration in the file is rendered for the devices in the cluster,
and the objects are sent to the API server as dry runs. With a name, the pending
work of the controller for that Configuration is shown, such as repairs.

Nothing is written. The exit code is 0 if nothing would change, 1 if something
would change, and 2 if an object would be rejected or diff itself failed.`,
		Example: `  kubectl akri diff -f configuration.yaml
  helm template . | kubectl akri diff -f -
  kubectl akri diff akri-debug-echo`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&v0.ConfigurationList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if (len(args) > 0) == (len(o.files) > 0) {
			return cli.Usage(command,
				errors.New("specify a Configuration: -f FILE for one that is not applied yet, or the NAME of one in the cluster"))
		}
		return o.run(command, streams, args)
	}
	o.addFlags(command)
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or directory with Configurations; - reads standard input")
	command.Flags().BoolVar(&o.policy.ClusterScoped, "allow-cluster-scoped", false, "set it if the controller runs with this flag")
	command.Flags().BoolVar(&o.policy.OtherNamespaces, "allow-other-namespaces", false, "set it if the controller runs with this flag")
	command.Flags().StringSliceVar(&o.kinds, "allow-kinds", nil, "value of this flag of the controller, as `KIND.GROUP,...`")
	return command
}

func (o *diffOptions) run(command *cobra.Command, streams cli.Streams, names []string) error {
	for _, kind := range o.kinds {
		o.policy.Kinds = append(o.policy.Kinds, schema.ParseGroupKind(kind))
	}
	var given []map[string]any
	var err error
	if len(o.files) > 0 {
		if given, err = manifest.Configurations(command, streams, o.files); err != nil {
			return err
		}
	}
	namespace, err := o.selectedNamespace()
	if err != nil {
		return cli.Failed(err)
	}
	api, err := o.connect(streams.Err, apply.DryRunOnly)
	if err != nil {
		return cli.Failed(err)
	}
	var all []view.Changes
	ctx := command.Context()
	for _, name := range names {
		configuration, err := api.configuration(ctx, namespace, name)
		if err != nil {
			return cli.Failed(err)
		}
		changes, err := api.drift(ctx, configuration, o.policy)
		if err != nil {
			return cli.Failed(err)
		}
		all = append(all, changes...)
	}
	for _, object := range given {
		changes, err := o.changes(ctx, api, streams.Err, namespace, &unstructured.Unstructured{Object: object})
		if err != nil {
			return cli.Failed(err)
		}
		all = append(all, changes...)
	}
	differences, rejections, err := view.Diff(streams.Out, all)
	switch {
	case err != nil:
		return cli.Failed(err)
	case rejections > 0:
		return cli.Failed(fmt.Errorf("%d of the objects would be rejected", rejections))
	case differences > 0:
		return cli.Exit(exitDiffers)
	}
	return nil
}

// drift returns the changes that the controller has yet to make for a Configuration.
func (c *cluster) drift(ctx context.Context, configuration *v0.Configuration, policy confine.Policy) ([]view.Changes, error) {
	instances, err := c.instancesOf(ctx, configuration.Namespace, configuration.Name)
	if err != nil {
		return nil, err
	}
	return newPreview(c, configuration, policy).all(ctx, instances)
}

// changes returns the changes that applying a Configuration would cause.
func (o *diffOptions) changes(
	ctx context.Context, api *cluster, notes io.Writer, namespace string, given *unstructured.Unstructured,
) ([]view.Changes, error) {
	switch {
	case given.GetName() == "":
		return nil, errors.New("metadata.name is missing: diff finds the Configuration in the cluster by its name")
	case given.GetNamespace() == "":
		given.SetNamespace(namespace)
	case o.namespace != "" && given.GetNamespace() != o.namespace:
		return nil, fmt.Errorf("the Configuration %s is in namespace %q, but -n is %q: omit one of them",
			given.GetName(), given.GetNamespace(), o.namespace)
	}
	given.SetGroupVersionKind(v0.ConfigurationKind)
	before, configuration, err := api.dryRunApply(ctx, given)
	if err != nil {
		return nil, err
	}
	instances, err := api.instancesOf(ctx, configuration.Namespace, configuration.Name)
	if err != nil {
		return nil, err
	}
	name := configuration.Namespace + "/" + configuration.Name
	if before != nil && !equality.Semantic.DeepEqual(before.Spec.DiscoveryHandler, configuration.Spec.DiscoveryHandler) {
		fmt.Fprintf(notes, "note: %s: the discovery handler changes too; the objects below are for the devices found so far\n", name)
	}
	for i := range instances {
		instances[i].Spec.BrokerProperties = templates.PropertiesAfterUpdate(before, configuration, &instances[i])
	}
	p := newPreview(api, configuration, o.policy)
	if len(instances) == 0 {
		fmt.Fprintf(notes, "note: %s: no device has been found yet; rendered for a sample device with spec.sampleProperties\n", name)
		instances, p.sample = sampleOf(configuration, p.compiled), true
	}
	return p.all(ctx, instances)
}

// dryRunApply sends a Configuration to the API server, which validates it and sets
// defaults, and returns the existing Configuration, if any, and the new one.
func (c *cluster) dryRunApply(ctx context.Context, given *unstructured.Unstructured) (before, after *v0.Configuration, err error) {
	const strict = metav1.FieldValidationStrict
	resource := c.dynamic.Resource(v0.ConfigurationResource).Namespace(given.GetNamespace())
	live, err := resource.Get(ctx, given.GetName(), metav1.GetOptions{})
	var answer *unstructured.Unstructured
	switch {
	case apierrors.IsNotFound(err):
		given.SetResourceVersion("")
		answer, err = resource.Create(ctx, given, metav1.CreateOptions{FieldValidation: strict})
	case err != nil:
		return nil, nil, fmt.Errorf("read Configuration %s: %w", given.GetName(), err)
	default:
		if before, err = decode[v0.Configuration](live.Object); err != nil {
			return nil, nil, fmt.Errorf("read Configuration %s: %w", given.GetName(), err)
		}
		desired := live.DeepCopy()
		desired.Object["spec"] = given.Object["spec"]
		answer, err = resource.Update(ctx, desired, metav1.UpdateOptions{FieldValidation: strict})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the API server rejects the Configuration: %w", err)
	}
	after, err = decode[v0.Configuration](answer.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("read Configuration %s: %w", given.GetName(), err)
	}
	return before, after, nil
}
