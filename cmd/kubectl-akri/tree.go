package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/facts"
	"akri.sh/akri/cmd/kubectl-akri/view"
)

type treeOptions struct {
	access
	allNamespaces bool
	selector      string
	watch         bool
	output        cli.Output
}

func newTree(streams cli.Streams, a access) *cobra.Command {
	o := treeOptions{access: a}
	command := &cobra.Command{
		Use:   "tree [CONFIGURATION]",
		Short: "Show Configurations with their devices, slots and objects",
		Long: `Show Configurations with their devices, slots and objects.

With -w, a terminal is redrawn at each change. Other output gets the trees that have
changed, each after a line with three dashes.`,
		Example: `  kubectl akri tree                  # in the current namespace
  kubectl akri tree -A -w            # in all namespaces, until Ctrl+C
  kubectl akri tree akri-debug-echo  # one Configuration
  kubectl akri tree -o json | jq '.[].instances[].spec.deviceUsage'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.completion(&v0.ConfigurationList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		selector, err := labels.Parse(o.selector)
		if err != nil {
			return cli.Usage(command, fmt.Errorf("-l %s: %w", o.selector, err))
		}
		return o.run(command.Context(), streams, args, selector)
	}
	flags := command.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show all namespaces")
	flags.StringVarP(&o.selector, "selector", "l", "", "`labels` of the Configurations to show, such as site=plant,line!=2")
	flags.BoolVarP(&o.watch, "watch", "w", false, "show changes until the command is interrupted")
	o.output.AddFlag(command)
	return command
}

func (o *treeOptions) run(ctx context.Context, streams cli.Streams, names []string, selector labels.Selector) error {
	api, err := o.connect(streams.Err, nil)
	if err != nil {
		return err
	}
	namespace := api.namespace
	if o.allNamespaces {
		namespace = ""
	}
	chosen := facts.Selection{Namespace: namespace, Name: strings.Join(names, ""), Labels: selector}
	forest, err := api.facts.Forest(ctx, chosen)
	if err != nil {
		return err
	}
	if len(forest) == 0 && len(names) > 0 {
		return fmt.Errorf("no Configuration %q in %s", names[0], facts.Where(namespace))
	}
	if len(forest) == 0 {
		fmt.Fprintf(streams.Err, "No Configurations in %s.\n", facts.Where(namespace))
	}
	if o.watch {
		var shown map[string]string
		return api.follow(ctx, streams.Err, chosen, func(forest view.Forest) (err error) {
			shown, err = o.redraw(streams, forest, shown)
			return err
		})
	}
	return o.output.Print(streams.Out, forest, forest.Text)
}

// follow calls show with the chosen Configurations, and again when they or their Instances
// change, until ctx ends.
func (c *cluster) follow(ctx context.Context, notes io.Writer, chosen facts.Selection, show func(view.Forest) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	var watching errgroup.Group
	defer func() { stop(nil); _ = watching.Wait() }()
	watched, changed, err := c.watch(ctx, chosen.Namespace, notes, stop)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	watching.Go(func() error { return watched.Start(ctx) })
	reader := facts.Reader{API: watched, Mapper: c.mapper, Cached: true}
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, ctx.Err()) {
				return err
			}
			return nil // interrupted, or the time is over
		case <-changed:
		}
		if !watched.WaitForCacheSync(ctx) {
			continue // ctx has ended
		}
		forest, err := reader.Forest(ctx, chosen)
		if err == nil {
			err = show(forest)
		}
		if err != nil {
			return err
		}
	}
}

// redraw prints the trees that differ from those that are shown, or all of them if it
// can clear the terminal. It returns what is shown then.
func (o *treeOptions) redraw(streams cli.Streams, forest view.Forest, shown map[string]string) (map[string]string, error) {
	texts := make(map[string]string, len(forest))
	var all, differing []string
	for i := range forest {
		var text strings.Builder
		one := forest[i : i+1]
		if err := o.output.Print(&text, one, one.Text); err != nil {
			return nil, err
		}
		name := forest[i].Configuration.Namespace + "/" + forest[i].Configuration.Name
		texts[name] = text.String()
		all = append(all, texts[name])
		if texts[name] != shown[name] {
			differing = append(differing, texts[name])
		}
	}
	if maps.Equal(texts, shown) {
		return texts, nil
	}
	for name := range shown {
		if _, exists := texts[name]; !exists {
			fmt.Fprintf(streams.Err, "note: Configuration %s was deleted\n", name)
		}
	}
	separator := "---\n"
	switch {
	case cli.Clear(streams.Out):
		separator, differing = "", all
	case o.output == "json":
		separator = "" // values of JSON need none
	case len(shown) > 0 && len(differing) > 0:
		differing = append([]string{""}, differing...)
	}
	if _, err := io.WriteString(streams.Out, strings.Join(differing, separator)); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	return texts, nil
}

// retried is a transport that says when requests, which the watches try again, begin to fail.
type retried struct {
	http.RoundTripper
	notes  io.Writer
	failed atomic.Bool // the latest request
}

func (t *retried) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	problem := err
	if err == nil && response.StatusCode >= http.StatusInternalServerError {
		problem = errors.New(response.Status)
	}
	if failed := problem != nil && request.Context().Err() == nil; !t.failed.Swap(failed) && failed {
		fmt.Fprintf(t.notes, "note: the API server does not answer, or fails, so changes are missing until it answers again: %v\n", problem)
	}
	return response, err
}

// watch returns a cache of Configurations and Instances, and a channel that gets a value
// when they change. It calls stop if they may not be watched.
func (c *cluster) watch(
	ctx context.Context, namespace string, notes io.Writer, stop context.CancelCauseFunc,
) (cache.Cache, <-chan struct{}, error) {
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &retried{RoundTripper: next, notes: notes} })
	options := cache.Options{
		Scheme: c.Scheme(), Mapper: c.mapper, DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) { // other errors can pass
				stop(fmt.Errorf("watch: %w", err))
			}
		},
	}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	watched, err := cache.New(config, options)
	if err != nil {
		return nil, nil, err
	}
	changed := make(chan struct{}, 1)
	changed <- struct{}{} // nothing is shown yet
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // what waits in the channel leads to the same trees
		}
	}
	for _, object := range []client.Object{&v0.Configuration{}, &v0.Instance{}} {
		informer, err := watched.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, nil, err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		}); err != nil {
			return nil, nil, err
		}
	}
	return watched, changed, nil
}
