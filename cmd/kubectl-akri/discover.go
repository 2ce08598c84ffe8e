package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/cmd/kubectl-akri/view"
	"akri.sh/akri/discovery/builtin"
	"akri.sh/akri/discovery/details"
)

// grace is the time to remove the Configuration, and by how much clocks may differ.
const grace = time.Minute

type discoverOptions struct {
	access
	file    string
	set     []string
	node    string
	save    string
	timeout time.Duration
	settle  time.Duration
	output  cli.Output
}

func newDiscover(streams cli.Streams, a access) *cobra.Command {
	o := discoverOptions{access: a}
	command := &cobra.Command{
		Use:   "discover (HANDLER [-f DETAILS] | -f CONFIGURATION)",
		Short: "Show which devices would be found, with their properties",
		Long: `Show which devices a discovery handler would find, and what prevents it from finding more.

The agents discover for a temporary Configuration without brokers. The command removes it
when nothing has changed for the time of --settle since the first device or failure, after
--timeout, or on Ctrl+C. If the command is killed, Akri's controller removes it a minute
after --timeout. The exit code is 1 if no device was found.

--set sets a key of discoveryDetails; dots lead into maps. A value that is valid JSON is
used as JSON, any other as text. A key that is given several times becomes a list, and so
does a single value if the handler expects a list.`,
		Example: `  kubectl akri discover udev --set 'udevRules=SUBSYSTEM=="tty", SUBSYSTEMS=="usb"'
  kubectl akri init usb-camera | kubectl akri discover -f - --node node1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(slices.Collect(maps.Keys(builtin.Validators)), cobra.ShellCompDirectiveNoFileComp),
	}
	command.RunE = func(command *cobra.Command, args []string) error { return o.run(command, streams, args) }
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "`file` with discoveryDetails, or with a Configuration; - reads standard input")
	flags.StringArrayVar(&o.set, "set", nil, "key of discoveryDetails, as `KEY=VALUE`")
	flags.StringVar(&o.node, "node", "", "show only what this `node` finds")
	flags.StringVar(&o.save, "save", "", "write the Configuration to this new `file`")
	flags.DurationVar(&o.timeout, "timeout", 40*time.Second, "`time` to wait; agents report after 30s that a handler is missing")
	flags.DurationVar(&o.settle, "settle", 2*time.Second, "end after this `time` without a change; raise it for slow devices")
	_ = command.RegisterFlagCompletionFunc("node", a.completion(&corev1.NodeList{}))
	o.output.AddFlag(command)
	return command
}

// handler returns the discovery handler with its details.
func (o *discoverOptions) handler(command *cobra.Command, streams cli.Streams, args []string) (handler v0.DiscoveryHandler, err error) {
	handler.Name = strings.Join(args, "")
	if o.file != "" {
		files, err := manifest.Read(command, streams, []string{o.file})
		if err != nil {
			return handler, err
		}
		handler.DiscoveryDetails = string(files[0].Data)
		if found := files.OfKind("Configuration"); len(found) == 1 && len(args) == 0 {
			configuration, err := decode[v0.Configuration](found[0].Object())
			if handler = configuration.Spec.DiscoveryHandler; err != nil {
				return handler, fmt.Errorf("-f %s: %w; kubectl akri lint shows where", o.file, err)
			}
		}
	}
	if err = setDetails(&handler, o.set); err == nil && handler.Name == "" {
		known := slices.Sorted(maps.Keys(builtin.Validators))
		err = fmt.Errorf("name a discovery handler, such as %s, or give one Configuration with -f", strings.Join(known, ", "))
	}
	return handler, err
}

// setDetails sets keys of the discoveryDetails.
func setDetails(handler *v0.DiscoveryHandler, pairs []string) error {
	content, values := map[string]any{}, map[string][]any{}
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
	if err := yaml.Unmarshal([]byte(handler.DiscoveryDetails), &content); err != nil && len(pairs) > 0 {
		return fmt.Errorf("--set needs discoveryDetails in YAML: %w", err)
	}
	wantsList := map[string]bool{}
	for range min(2*len(pairs), 2) { // once more for single values that the handler wants in a list
		for _, key := range slices.Sorted(maps.Keys(values)) {
			all := values[key]
			var value any = all
			if len(all) == 1 && !wantsList[key] {
				value = all[0]
			}
			if err := unstructured.SetNestedField(content, value, strings.Split(key, ".")...); err != nil {
				return fmt.Errorf("--set %s: %w", key, err)
			}
		}
		text, _ := yaml.Marshal(content) // it has been read from YAML or JSON
		handler.DiscoveryDetails = string(text)
		if validate := builtin.Validators[handler.Name]; validate != nil {
			for _, fault := range details.Faults(validate(handler.DiscoveryDetails)) {
				wantsList[fault.Path] = strings.HasPrefix(fault.Cause, "want a list")
			}
		}
	}
	return nil
}

func (o *discoverOptions) run(command *cobra.Command, streams cli.Streams, args []string) error {
	handler, err := o.handler(command, streams, args)
	if err == nil {
		err = o.write(handler)
	}
	if err != nil {
		return cli.Usage(command, err)
	}
	ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGHUP) // the terminal is closed
	defer stop()
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	created := v0.Configuration{Spec: v0.ConfigurationSpec{DiscoveryHandler: handler, Capacity: 1}}
	created.Namespace, created.Name = api.namespace, "discover-"+rand.String(5)
	created.Labels = map[string]string{v0.LabelDiscoverUntil: fmt.Sprint(time.Now().Add(o.timeout + grace).Unix())}
	if err := api.Create(context.WithoutCancel(ctx), &created); err != nil {
		_ = api.remove(ctx, &created) // it exists if only the answer was lost
		return fmt.Errorf("create a Configuration to discover with in %s: %w", facts.Where(api.namespace), err)
	}
	fmt.Fprintf(streams.Err, "Discovering for at most %s; Configuration %s/%s is temporary …\n", o.timeout, api.namespace, created.Name)
	found, err := o.watch(ctx, streams, api, &created)
	if err := errors.Join(err, api.remove(ctx, &created)); err != nil {
		return err
	}
	if len(found.Instances) == 0 {
		found.System, err = api.facts.System(context.WithoutCancel(ctx), "")
		defer printNotes(streams, found.System.Unread)
		if err != nil {
			return err
		}
	}
	found.ConcludeDiscovery(o.node)
	if err := o.output.Print(streams.Out, found, found.Discovered); err != nil || len(found.Instances) > 0 {
		return err
	}
	return cli.Exit(1)
}

// watch returns what is found until discovery has settled, the time is over, or ctx ends.
func (o *discoverOptions) watch(ctx context.Context, streams cli.Streams, api *cluster, created *v0.Configuration) (*view.Facts, error) {
	ctx, settled := context.WithTimeout(ctx, o.timeout)
	defer settled()
	timer := time.AfterFunc(o.timeout, settled)
	defer timer.Stop()
	found, shown := &view.Facts{Configuration: created}, ""
	chosen := facts.Selection{Namespace: created.Namespace, Name: created.Name}
	return found, api.follow(ctx, streams.Err, chosen, func(forest view.Forest) error {
		if len(forest) == 0 {
			return nil // it is not in the cache yet
		}
		*found = view.Facts{Configuration: &forest[0].Configuration, Instances: forest[0].Instances}
		found.ConcludeDiscovery(o.node)
		var text strings.Builder
		_ = found.Discovered(&text) // what the controller adds to objects does not matter
		if text.String() != shown && len(found.Instances)+len(found.Configuration.Status.DiscoveryFailures) > 0 {
			timer.Reset(o.settle)
		}
		shown = text.String()
		return nil
	})
}

// remove removes the Configuration of a discover, also after Ctrl+C.
func (c *cluster) remove(ctx context.Context, configuration *v0.Configuration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace/2)
	defer cancel()
	err := client.IgnoreNotFound(c.Delete(ctx, configuration))
	if err != nil {
		err = fmt.Errorf("remove the temporary Configuration: %w; kubectl delete -n %s configurations.akri.sh %s removes it",
			err, configuration.Namespace, configuration.Name)
	}
	return err
}

// write writes the Configuration to the file of --save.
func (o *discoverOptions) write(handler v0.DiscoveryHandler) error {
	text, err := yaml.Marshal(handler)
	if err != nil || o.save == "" {
		return err
	}
	indented := strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ")
	file, err := os.OpenFile(o.save, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // it is not there to replace anything
	if err != nil {
		return err
	}
	_, err = file.WriteString(offline.Initial("found", "$NAME", "devices", "$HANDLER", indented))
	return errors.Join(err, file.Close())
}
