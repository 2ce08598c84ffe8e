package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/discovery/details"
)

const (
	// quiet is how long nothing changes when discovery has settled. Nodes that see the same
	// device, and hosts that answer to a multicast, follow each other more closely.
	quiet = 3 * time.Second
	// removalTime is how long the removal of the Configuration is tried.
	removalTime = 10 * time.Second
	// skew is by how much the clocks of those who discover may differ.
	skew = time.Minute
)

type discoverOptions struct {
	access
	file    string
	set     []string
	node    string
	save    string
	timeout time.Duration
	output  cli.Output
}

func newDiscover(streams cli.Streams, a access) *cobra.Command {
	o := discoverOptions{access: a}
	handlers := slices.Sorted(maps.Keys(builtin.Validators))
	command := &cobra.Command{
		Use:   "discover (HANDLER [-f DETAILS] | -f CONFIGURATION)",
		Short: "Show which devices would be found, with their properties",
		Long: `Show which devices a discovery handler would find, with the nodes that see them and their
properties, and what prevents it from finding more.

The agents discover for a Configuration without brokers, which exists for as long as the
command runs. It ends three seconds after the last change, or after --timeout, and
removes the Configuration, also after Ctrl+C. If it is killed, the next discover in the
namespace does.

--set sets a key of discoveryDetails, which may be several with dots in between. A value
that is JSON is taken as such, and any other as text. If a key is given several times, or
the handler wants a list, its values become a list.

The exit code is 0 if a device was found, and 1 if none was, or if the Configuration is
rejected.`,
		Example: `  kubectl akri discover udev --set 'udevRules=SUBSYSTEM=="tty", SUBSYSTEMS=="usb"'
  kubectl akri discover onvif --set addresses=192.0.2.0/28 --set details='["information"]'
  kubectl akri discover mqtt -f details.yaml --save configuration.yaml
  kubectl akri init usb-camera | kubectl akri discover -f - --node node1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(handlers, cobra.ShellCompDirectiveNoFileComp),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		handler, err := o.handler(command, streams, args)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGHUP) // the terminal is closed
		defer stop()
		return o.run(ctx, streams, handler)
	}
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "`file` with discoveryDetails, or with a Configuration; - reads standard input")
	flags.StringArrayVar(&o.set, "set", nil, "key of discoveryDetails, as `KEY=VALUE`")
	flags.StringVar(&o.node, "node", "", "show only what this `node` finds")
	flags.StringVar(&o.save, "save", "", "write the Configuration to this `file`")
	flags.DurationVar(&o.timeout, "timeout", 40*time.Second, "`time` to wait for the first device; agents report after 30s that a handler is missing")
	_ = command.RegisterFlagCompletionFunc("node", func(command *cobra.Command, _ []string, text string) ([]string, cobra.ShellCompDirective) {
		return a.completion(&corev1.NodeList{})(command, nil, text)
	})
	o.output.AddFlag(command)
	return command
}

// handler returns the discovery handler with its details.
func (o *discoverOptions) handler(command *cobra.Command, streams cli.Streams, args []string) (v0.DiscoveryHandler, error) {
	handler := v0.DiscoveryHandler{Name: strings.Join(args, "")}
	if o.file != "" {
		files, err := manifest.Read(command, streams, []string{o.file})
		if err != nil {
			return handler, err
		}
		switch found := files.OfKind("Configuration"); {
		case len(found) == 1 && len(args) == 0:
			configuration, err := decode[v0.Configuration](found[0].Object())
			if err != nil {
				return handler, fmt.Errorf("%s: %w; kubectl akri lint -f %[1]s shows the place", o.file, err)
			}
			handler = configuration.Spec.DiscoveryHandler
		case len(found) > 0:
			return handler, cli.Usage(command, fmt.Errorf("-f %s: give a file with one Configuration and no HANDLER, or one with discoveryDetails", o.file))
		default:
			handler.DiscoveryDetails = string(files[0].Data)
		}
	}
	if handler.Name == "" {
		return handler, cli.Usage(command, fmt.Errorf("name a discovery handler, such as %s, or give a Configuration with -f",
			strings.Join(slices.Sorted(maps.Keys(builtin.Validators)), ", ")))
	}
	if err := setDetails(&handler, o.set); err != nil {
		return handler, cli.Usage(command, err)
	}
	return handler, nil
}

// setDetails sets keys of the discoveryDetails.
func setDetails(handler *v0.DiscoveryHandler, pairs []string) error {
	if len(pairs) == 0 {
		return nil
	}
	values := map[string][]any{}
	for _, pair := range pairs {
		key, text, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return fmt.Errorf("--set %q: use KEY=VALUE, as in --set 'udevRules=SUBSYSTEM==\"tty\"'", pair)
		}
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		values[key] = append(values[key], value)
	}
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(handler.DiscoveryDetails), &content); err != nil {
		return fmt.Errorf("discoveryDetails, of which --set sets a key, are no YAML: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		var value any = values[key]
		if len(values[key]) == 1 {
			value = values[key][0]
		}
		for range 2 {
			err := unstructured.SetNestedField(content, value, strings.Split(key, ".")...)
			text, _ := yaml.Marshal(content) // it has been read from YAML or JSON
			if handler.DiscoveryDetails = string(text); err != nil {
				return fmt.Errorf("--set %s: %w", key, err)
			}
			if !wantsList(handler, key) {
				break
			}
			value = values[key]
		}
	}
	return nil
}

// wantsList reports whether a built-in handler wants a list as the value of a key.
func wantsList(handler *v0.DiscoveryHandler, key string) bool {
	validate := builtin.Validators[handler.Name]
	return validate != nil && slices.ContainsFunc(details.Faults(validate(handler.DiscoveryDetails)), func(fault *details.Fault) bool {
		return fault.Path == key && strings.HasPrefix(fault.Cause, "want a list")
	})
}

func (o *discoverOptions) run(ctx context.Context, streams cli.Streams, handler v0.DiscoveryHandler) error {
	if err := o.write(handler); err != nil {
		return err
	}
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	defer api.printNotes(streams)
	api.removeLeft(ctx)
	created := v0.Configuration{Spec: v0.ConfigurationSpec{DiscoveryHandler: handler, Capacity: 1}}
	created.Namespace, created.Name = api.namespace, "discover-"+rand.String(5)
	created.Labels = map[string]string{v0.LabelDiscoverUntil: fmt.Sprint(time.Now().Add(o.timeout + removalTime + skew).Unix())}
	// An answer that arrives after Ctrl+C says whether there is something to remove.
	err = api.Create(context.WithoutCancel(ctx), &created)
	if err != nil && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return fmt.Errorf("create a Configuration to discover with in %s: %w", where(api.namespace), err)
	}
	facts := &view.Facts{Configuration: &created}
	if err == nil {
		fmt.Fprintf(streams.Err, "Discovering for %s at most, as Configuration %s/%s, which is then removed …\n", o.timeout, created.Namespace, created.Name)
		facts, err = o.watch(ctx, streams, api, &created)
	}
	if err := errors.Join(err, api.remove(ctx, &created)); err != nil {
		return err
	}
	if len(facts.Instances) == 0 {
		if facts.System, err = api.system(context.WithoutCancel(ctx), ""); err != nil {
			return err
		}
	}
	found := facts.Found(o.node)
	if err := o.output.Print(streams.Out, found, found.Text); err != nil || len(found.Devices) > 0 {
		return err
	}
	return cli.Exit(1)
}

// watch returns what is found until discovery has settled, the time is over, or ctx ends.
func (o *discoverOptions) watch(ctx context.Context, streams cli.Streams, api *cluster, created *v0.Configuration) (*view.Facts, error) {
	ctx, settled := context.WithCancel(ctx)
	defer settled()
	end := time.Now().Add(o.timeout)
	timer := time.AfterFunc(o.timeout, settled)
	defer timer.Stop()
	facts, latest := &view.Facts{Configuration: created}, &view.Found{}
	chosen := selection{namespace: created.Namespace, names: []string{created.Name}, selector: labels.Everything()}
	err := api.follow(ctx, streams.Err, chosen, func(forest view.Forest) error {
		if len(forest) == 0 {
			return nil // it is not in the cache yet
		}
		facts = &view.Facts{Configuration: &forest[0].Configuration, Instances: forest[0].Instances}
		found := facts.Found(o.node)
		if !reflect.DeepEqual(found, latest) && len(found.Devices)+len(facts.Configuration.Status.DiscoveryFailures) > 0 {
			timer.Reset(min(quiet, time.Until(end)))
		}
		latest = found
		return nil
	})
	return facts, err
}

// remove removes the Configuration of a discover.
func (c *cluster) remove(ctx context.Context, configuration *v0.Configuration) error {
	var last error
	_ = wait.PollUntilContextTimeout(context.WithoutCancel(ctx), time.Second, removalTime, true, func(ctx context.Context) (bool, error) {
		last = client.IgnoreNotFound(c.Delete(ctx, configuration))
		return last == nil || apierrors.IsForbidden(last), nil
	})
	if last != nil {
		return fmt.Errorf("Configuration %s/%s, with which devices are discovered, may still be there: %w; remove it with "+
			"kubectl delete configurations.akri.sh -n %[1]s %s", configuration.Namespace, configuration.Name, last)
	}
	return nil
}

// removeLeft removes the Configurations that discovers which were killed have left.
func (c *cluster) removeLeft(ctx context.Context) {
	var left v0.ConfigurationList
	if err := c.List(ctx, &left, client.InNamespace(c.namespace), client.HasLabels{v0.LabelDiscoverUntil}); err != nil {
		return // the attempt to create one fails for the same reason
	}
	for i := range left.Items {
		one := &left.Items[i]
		until, _ := strconv.ParseInt(one.Labels[v0.LabelDiscoverUntil], 10, 64)
		if time.Now().Unix() > until && c.remove(ctx, one) == nil {
			c.notes = append(c.notes, "removed Configuration "+one.Name+", which a discover that was killed has left")
		}
	}
}

// write writes the Configuration to the file of --save.
func (o *discoverOptions) write(handler v0.DiscoveryHandler) error {
	if o.save == "" {
		return nil
	}
	text, err := yaml.Marshal(handler)
	if err == nil {
		text = []byte(offline.Initial("found", "devices", "$HANDLER", strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")))
		err = os.WriteFile(o.save, text, 0o644)
	}
	if err != nil {
		return cli.Failed(fmt.Errorf("--save: %w", err))
	}
	return nil
}
