package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/controller/inventory"
)

func newWhy(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "why (NAME | KIND/NAME | KIND NAME)",
		Short: "Show why a device is not in use, and what to do about it",
		Long: `Show why a device is not in use, and what to do about it.

The name is that of an Instance, a Configuration, a Pod, or an object that Akri created,
such as a Service. An Instance or a Configuration is preferred to other objects of the
same name.`,
		Example: `  kubectl akri why akri-debug-echo-8120fe
  kubectl akri why configuration/akri-debug-echo
  kubectl akri why -n plant pod/door-cam-da9268-pod`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completion(&v0.InstanceList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
		if !found {
			kind, name = "", kind
		}
		if name == "" || found && kind == "" || strings.Contains(name, "/") {
			return cli.Usage(command, errors.New("specify a name: NAME, KIND/NAME or KIND NAME, as in pod/door-cam"))
		}
		return a.why(command.Context(), streams, output, kind, name)
	}
	output.AddFlag(command)
	return command
}

func (a access) why(ctx context.Context, streams cli.Streams, output cli.Output, kind, name string) error {
	api, err := a.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	defer api.printNotes(streams)
	if kind == "" {
		if kind, err = api.kindOf(ctx, api.namespace, name); err != nil {
			return err
		}
	}
	mapping, err := api.mapping(kind)
	if err != nil {
		return err
	}
	facts, err := api.facts(ctx, mapping, api.namespace, name)
	if err != nil {
		return err
	}
	facts.Conclude()
	return output.Print(streams.Out, facts, facts.Text)
}

// kindOf returns the kind of an object that only a name is given of.
func (c *cluster) kindOf(ctx context.Context, namespace, name string) (string, error) {
	candidates, err := c.existing(ctx, namespace, name, map[string]client.Object{
		"instance": &v0.Instance{}, "configuration": &v0.Configuration{},
	})
	if err != nil {
		return "", err
	}
	if len(candidates) == 0 {
		if candidates, err = c.existing(ctx, namespace, name, map[string]client.Object{"pod": &corev1.Pod{}}); err != nil {
			return "", err
		}
		recorded, err := c.recorded(ctx, namespace, name)
		if err != nil {
			return "", err
		}
		candidates = append(candidates, recorded...)
		slices.Sort(candidates)
		candidates = slices.Compact(candidates)
	}
	switch len(candidates) {
	case 0:
		return "", fmt.Errorf("no Instance, Configuration or Pod %q in %s, and no object that Akri created: the device has not been found, "+
			"or the name is wrong; kubectl akri tree lists the names", name, where(namespace))
	case 1:
		return candidates[0], nil
	}
	for i, kind := range candidates {
		candidates[i] = kind + "/" + name
	}
	return "", fmt.Errorf("%q is the name of %d objects: specify one of %s", name, len(candidates), strings.Join(candidates, ", "))
}

// existing returns the kinds that have a readable object with the name.
func (c *cluster) existing(ctx context.Context, namespace, name string, kinds map[string]client.Object) ([]string, error) {
	var found []string
	for kind, object := range kinds {
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		switch {
		case err == nil:
			found = append(found, kind)
		case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
			return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
		}
	}
	slices.Sort(found)
	return found, nil
}

// recorded returns the kinds of the objects with that name which the controller has
// created, according to the Instances and Configurations of the namespace.
func (c *cluster) recorded(ctx context.Context, namespace, name string) ([]string, error) {
	instances, configurations, _, err := c.devices(ctx, namespace, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	var resources []v0.ResourceStatus
	for i := range instances {
		resources = append(resources, instances[i].Status.Resources...)
	}
	for i := range configurations {
		resources = append(resources, configurations[i].Status.Resources...)
	}
	var kinds []string
	for _, resource := range resources {
		if resource.Name == name && cmp.Or(resource.Namespace, namespace) == namespace {
			kinds = append(kinds, strings.ToLower(schema.GroupKind{Group: resource.Group, Kind: resource.Kind}.String()))
		}
	}
	return kinds, nil
}

// originText names what an object was created for.
func originText(made *rendered) string {
	if made.dependent != nil {
		return fmt.Sprintf("%s, by %s", made.parent, inventory.RefOfObject(made.object))
	}
	return made.parent.String()
}
