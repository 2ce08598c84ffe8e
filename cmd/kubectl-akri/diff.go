package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/view"
)

// Exit codes of diff, as of kubectl diff.
const (
	exitDiffers = 1
	exitRefused = 2
)

type diffOptions struct {
	access
	files  []string
	policy confine.Policy
	kinds  []string
}

func newDiff(streams offline.Streams) *cobra.Command {
	var o diffOptions
	command := &cobra.Command{
		Use:   "diff (-f FILE... | CONFIGURATION)",
		Short: "Show what applying a Configuration would change in the cluster",
		Long: `Show what applying a Configuration would change in the cluster.

With -f: the Configuration of the file is rendered for the devices that the
cluster has now, and the API server is asked, by dry runs, what it would make of
the objects. With a name: what the controller still has to do for that
Configuration, such as repairs.

Nothing is written. The exit code is 0 if nothing would change, 1 if something
would, 2 if something would be refused or diff itself has failed.`,
		Example: `  kubectl akri diff -f configuration.yaml
  helm template . | kubectl akri diff -f -
  kubectl akri diff akri-debug-echo`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&v0.ConfigurationList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		if (len(args) > 0) == (len(o.files) > 0) {
			return offline.Misused(command, errors.New("say which Configuration: -f FILE for one that is not applied yet, or the NAME of one that is"))
		}
		return o.run(command, streams, args)
	}
	o.addFlags(command)
	command.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "`file` or folder with Configurations; - reads standard input")
	command.Flags().BoolVar(&o.policy.ClusterScoped, "allow-cluster-scoped", false, "the controller runs with this flag")
	command.Flags().BoolVar(&o.policy.OtherNamespaces, "allow-other-namespaces", false, "the controller runs with this flag")
	command.Flags().StringSliceVar(&o.kinds, "allow-kinds", nil, "the controller runs with this flag: `KIND.GROUP,...`")
	return command
}

func (o *diffOptions) run(command *cobra.Command, streams offline.Streams, names []string) error {
	for _, kind := range o.kinds {
		o.policy.Kinds = append(o.policy.Kinds, schema.ParseGroupKind(kind))
	}
	var given []map[string]any
	var err error
	if len(o.files) > 0 {
		if given, err = offline.ReadConfigurations(command, streams, o.files); err != nil {
			return err
		}
	}
	namespace, err := o.home()
	if err != nil {
		return offline.Trouble(err)
	}
	api, err := o.connect(streams.Err, apply.DryRunOnly)
	if err != nil {
		return offline.Trouble(err)
	}
	var all []view.Changes
	ctx := command.Context()
	for _, name := range names {
		configuration, err := api.configuration(ctx, namespace, name)
		if err != nil {
			return offline.Trouble(err)
		}
		changes, err := api.drift(ctx, configuration, o.policy)
		if err != nil {
			return offline.Trouble(err)
		}
		all = append(all, changes...)
	}
	for _, object := range given {
		changes, err := o.announced(ctx, api, streams.Err, namespace, &unstructured.Unstructured{Object: object})
		if err != nil {
			return offline.Trouble(err)
		}
		all = append(all, changes...)
	}
	summary, err := view.Diff(streams.Out, all)
	switch {
	case err != nil:
		return offline.Trouble(err)
	case summary.Refusals > 0:
		return offline.Trouble(fmt.Errorf("%d of the objects would be refused", summary.Refusals))
	case summary.Differences > 0:
		return offline.Exit(exitDiffers)
	}
	return nil
}

// drift is what the controller has yet to do for a Configuration as it is.
func (c *cluster) drift(ctx context.Context, configuration *v0.Configuration, policy confine.Policy) ([]view.Changes, error) {
	instances, err := c.instancesOf(ctx, configuration.Namespace, configuration.Name)
	if err != nil {
		return nil, err
	}
	return newPreview(c, configuration, policy).all(ctx, instances)
}

// announced is what applying a Configuration would lead to.
func (o *diffOptions) announced(ctx context.Context, api *cluster, notes io.Writer, namespace string, given *unstructured.Unstructured) ([]view.Changes, error) {
	switch {
	case given.GetName() == "":
		return nil, errors.New("metadata.name is missing: diff compares by it")
	case given.GetNamespace() == "":
		given.SetNamespace(namespace)
	case o.namespace != "" && given.GetNamespace() != o.namespace:
		return nil, fmt.Errorf("the namespace of Configuration %s is %q, and -n says %q: leave one of them out", given.GetName(), given.GetNamespace(), o.namespace)
	}
	given.SetGroupVersionKind(v0.ConfigurationKind)
	before, configuration, err := api.tried(ctx, given)
	if err != nil {
		return nil, err
	}
	instances, err := api.instancesOf(ctx, configuration.Namespace, configuration.Name)
	if err != nil {
		return nil, err
	}
	name := configuration.Namespace + "/" + configuration.Name
	if before != nil && !equality.Semantic.DeepEqual(before.Spec.DiscoveryHandler, configuration.Spec.DiscoveryHandler) {
		fmt.Fprintf(notes, "note: %s: the discovery changes as well; the objects below are for the devices found so far\n", name)
	}
	for i := range instances {
		instances[i].Spec.BrokerProperties = overlaid(instances[i].Spec.BrokerProperties, before, configuration)
	}
	preview := newPreview(api, configuration, o.policy)
	if len(instances) == 0 {
		fmt.Fprintf(notes, "note: %s: no device has been found yet: a made-up one stands in for it, with spec.sampleProperties where they are set\n", name)
		instances, preview.sample = sampleOf(configuration, preview.compiled), true
	}
	return preview.all(ctx, instances)
}

// tried has the API server check and complete a Configuration, as if it replaced
// the one that is there, if one is.
func (c *cluster) tried(ctx context.Context, given *unstructured.Unstructured) (before, after *v0.Configuration, err error) {
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
		if before, err = decoded[v0.Configuration](live.Object); err != nil {
			return nil, nil, fmt.Errorf("read Configuration %s: %w", given.GetName(), err)
		}
		wanted := live.DeepCopy()
		wanted.Object["spec"] = given.Object["spec"]
		answer, err = resource.Update(ctx, wanted, metav1.UpdateOptions{FieldValidation: strict})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the API server does not accept the Configuration: %w", err)
	}
	after, err = decoded[v0.Configuration](answer.Object)
	if err != nil {
		return nil, nil, fmt.Errorf("read Configuration %s: %w", given.GetName(), err)
	}
	return before, after, nil
}

// overlaid is a device's properties once the agents have seen the new
// Configuration, whose brokerProperties win over the device's own.
func overlaid(properties map[string]string, before, after *v0.Configuration) map[string]string {
	now := maps.Clone(properties)
	if now == nil {
		now = map[string]string{}
	}
	if before != nil {
		maps.DeleteFunc(now, func(key, value string) bool {
			written, found := before.Spec.BrokerProperties[key]
			return found && written == value
		})
	}
	maps.Copy(now, after.Spec.BrokerProperties)
	return now
}
