package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
	output cli.Output
}

func newDiff(streams cli.Streams, a access) *cobra.Command {
	o := diffOptions{access: a}
	command := &cobra.Command{
		Use:   "diff (-f FILE... | CONFIGURATION)",
		Short: "Show what applying a Configuration would change in the cluster",
		Long: `Show what applying a Configuration would change in the cluster.

With -f, the Configuration in the file is rendered for the devices in the cluster,
and the objects are sent to the API server as dry runs. With a name, the pending
work of the controller for that Configuration is shown, such as repairs.

KUBECTL_EXTERNAL_DIFF selects another program to compare the objects, as for kubectl
diff.

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
	o.output.AddFlag(command)
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
	api, err := o.connect(streams.Err, apply.DryRunOnly)
	if err != nil {
		return cli.Failed(err)
	}
	var all []view.Changes
	ctx := command.Context()
	for _, name := range names {
		configuration, err := api.facts.Configuration(ctx, api.namespace, name)
		if err != nil {
			return cli.Failed(err)
		}
		instances, err := api.facts.InstancesOf(ctx, api.namespace, name)
		if err != nil {
			return cli.Failed(err)
		}
		changes, err := newPreview(api, configuration, o.policy).all(ctx, instances)
		if err != nil {
			return cli.Failed(err)
		}
		all = append(all, changes...)
	}
	for _, object := range given {
		changes, err := o.changes(ctx, api, streams.Err, &unstructured.Unstructured{Object: object})
		if err != nil {
			return cli.Failed(err)
		}
		all = append(all, changes...)
	}
	return o.show(ctx, streams, view.NewPreview(all))
}

func (o *diffOptions) show(ctx context.Context, streams cli.Streams, changes view.Preview) error {
	differences, rejections := changes.Count()
	var err error
	if external := os.Getenv("KUBECTL_EXTERNAL_DIFF"); external != "" && o.output == "" && differences > 0 {
		if err = changes.Summary(streams.Err); err == nil {
			differences, err = compare(ctx, streams, external, changes)
		}
	} else {
		err = o.output.Print(streams.Out, changes, changes.Text)
	}
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

// kubectlArgument matches the arguments that kubectl diff passes to an external program.
var kubectlArgument = regexp.MustCompile(`^[a-zA-Z0-9-=]+$`)

// compare runs an external program with two directories, as kubectl diff does. It returns 0
// if the program finds no differences and nothing happens to objects that stay as they are:
// these are orphaned, or wait.
func compare(ctx context.Context, streams cli.Streams, external string, changes view.Preview) (int, error) {
	dir, err := os.MkdirTemp("", "kubectl-akri-diff")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program, arguments, _ := strings.Cut(external, " ")
	args := slices.DeleteFunc(strings.Fields(arguments), func(argument string) bool { return !kubectlArgument.MatchString(argument) })
	same := 0
	for i, name := range []string{"LIVE", "MERGED"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return 0, err
		}
		for file, texts := range changes.Files() {
			if texts[0] == texts[1] {
				same = exitDiffers
			}
			if texts[i] == "" {
				continue // it does not exist
			}
			if err := os.WriteFile(filepath.Join(dir, name, file), []byte(texts[i]), 0o600); err != nil {
				return 0, err
			}
		}
	}
	command := exec.CommandContext(ctx, program, append(args, filepath.Join(dir, "LIVE"), filepath.Join(dir, "MERGED"))...)
	command.Stdout, command.Stderr = cli.Raw(streams.Out), cli.Raw(streams.Err) // it may use colors, or ask
	err = command.Run()
	if code := command.ProcessState.ExitCode(); err == nil || code == exitDiffers {
		return max(code, same), nil
	}
	return 0, fmt.Errorf("KUBECTL_EXTERNAL_DIFF: run %q: %w", program, err)
}

// changes returns the changes that applying a Configuration would cause.
func (o *diffOptions) changes(
	ctx context.Context, api *cluster, notes io.Writer, given *unstructured.Unstructured,
) ([]view.Changes, error) {
	switch {
	case given.GetName() == "":
		return nil, errors.New("metadata.name is missing: diff finds the Configuration in the cluster by its name")
	case given.GetNamespace() == "":
		given.SetNamespace(api.namespace)
	case o.flags.Context.Namespace != "" && given.GetNamespace() != o.flags.Context.Namespace:
		return nil, fmt.Errorf("the Configuration %s is in namespace %q, but -n is %q: omit one of them",
			given.GetName(), given.GetNamespace(), o.flags.Context.Namespace)
	}
	given.SetGroupVersionKind(v0.ConfigurationKind)
	before, configuration, err := api.dryRunApply(ctx, given)
	if err != nil {
		return nil, err
	}
	instances, err := api.facts.InstancesOf(ctx, configuration.Namespace, configuration.Name)
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
