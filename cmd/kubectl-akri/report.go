package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/cmd/kubectl-akri/bundle"
	"akri.sh/akri/cmd/kubectl-akri/cli"
)

type reportOptions struct {
	access
	file    string
	port    int
	timeout time.Duration
}

func newReport(streams cli.Streams) *cobra.Command {
	var o reportOptions
	command := &cobra.Command{
		Use:   "report",
		Short: "Write an archive for a bug report, without credentials",
		Long: `Write an archive for a bug report: versions, Configurations and Instances with their
conditions, Events, metadata and status of the objects made for devices, Akri's own
workloads, the state of the agents, and logs of Akri's Pods.

Secrets are never read, and values that look like credentials are replaced. README.md
in the archive says what it contains and what is left out. What you may not read is
listed in errors.txt.`,
		Example:           "  kubectl akri report",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), streams, time.Now())
		},
	}
	o.addFlags(command)
	o.defaultToSystemNamespace(command, "`namespace` in which Akri is installed; Configurations are read from all namespaces")
	flags := command.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", "`file` to write, which must not exist (default: akri-report-DATE-TIME.tar.gz)")
	flags.IntVar(&o.port, "port", debug.Port, "`port` of the agents' debug endpoint, as in their flag --debug-address")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to collect; the archive then has what was read until then")
	return command
}

func (o *reportOptions) run(ctx context.Context, streams cli.Streams, now time.Time) error {
	config, err := o.loader().ClientConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	api, err := o.connect(io.Discard, nil)
	if err != nil {
		return err
	}
	other := access{kubeconfig: o.kubeconfig, context: o.context}
	fallback, err := other.selectedNamespace()
	if err != nil {
		return err
	}
	if _, err := serverVersion(ctx, config); err != nil {
		return err
	}
	if o.file == "" {
		o.file = "akri-report-" + now.UTC().Format("20060102-150405") + ".tar.gz"
	}
	// Only the user may read it, and no other file is overwritten.
	file, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return cli.Failed(fmt.Errorf("create the archive: %w", err))
	}
	fmt.Fprintf(streams.Err, "Collecting for up to %s …\n", o.timeout)
	collecting, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("%s have passed", o.timeout))
	defer cancel()
	c := collector{cluster: api, config: config, namespace: o.namespace, fallback: fallback, port: o.port, bundle: &bundle.Bundle{}}
	c.collect(collecting)
	if ctx.Err() != nil { // the user does not wait for it
		return errors.Join(ctx.Err(), file.Close(), os.Remove(o.file))
	}
	if err := errors.Join(c.bundle.Write(file, now), file.Close()); err != nil {
		return cli.Failed(fmt.Errorf("write %s: %w", o.file, err))
	}
	fmt.Fprintln(streams.Out, o.file)
	if n := c.bundle.Failures(); n > 0 {
		fmt.Fprintf(streams.Err, "note: %d parts are missing: errors.txt in the archive says why\n", n)
	}
	fmt.Fprintln(streams.Err, "note: it contains names and addresses of your cluster: look through it before you make it public")
	return nil
}

// Bounds of logs. Those of the archive are in package bundle.
const (
	maxLogLines = 5000
	maxLogBytes = 1 << 20
)

// readLog returns the end of a container's log, or of the one before its restart.
func readLog(ctx context.Context, logs rest.Interface, pod client.ObjectKey, container string, previous bool) ([]byte, error) {
	return logs.Get().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("log").
		VersionedParams(&corev1.PodLogOptions{
			Container: container, Previous: previous, Timestamps: true,
			TailLines: new(int64(maxLogLines)), LimitBytes: new(int64(maxLogBytes)),
		}, runtime.NewParameterCodec(scheme.Scheme)).
		Do(ctx).Raw()
}

// newLogs returns a client for logs.
func newLogs(config *rest.Config) (rest.Interface, error) {
	config = withGroupVersion(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}
