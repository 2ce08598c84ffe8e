package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/discovery/conformance"
	"akri.sh/akri/discovery/protocol"
)

// checkFlags are the flags of the command check.
type checkFlags struct {
	endpoint   string
	dir        string
	name       string
	details    string
	invalid    []string
	properties []string
	devices    int
	timeout    time.Duration
	quiet      time.Duration
}

func newCheck() *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check any discovery handler against the contract of handlers",
		Long: `check calls a discovery handler, in any language, as agents do, and prints for each
rule whether the handler keeps it. The exit code is 1 if it breaks one.

With --endpoint, it checks a running handler. With --dir, it acts as the agent: it
creates ` + protocol.RegistrationSocket + ` in the directory and waits for the handler
to register. Start the handler with DISCOVERY_HANDLERS_DIRECTORY set to the
directory. check then restarts its agent, and waits again. Never use a directory in
which an agent runs.

Some rules need more than valid details: --invalid-details-file for refusals, and
devices, with --min-devices, for ids and properties.`,
		Example: `  akri-discovery check --endpoint /var/lib/akri/cameras.sock --details-file details.yaml
  akri-discovery check --endpoint 10.0.0.5:10000 --details-file details.yaml --invalid-details-file wrong.yaml
  akri-discovery check --dir /tmp/handlers --details-file details.yaml --min-devices 1`,
		Args: cobra.NoArgs,
	}
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&flags.endpoint, "endpoint", "", "path of the handler's Unix socket, or HOST:PORT")
	set.StringVar(&flags.dir, "dir", "", "directory in which the handler will register, instead of --endpoint")
	set.StringVar(&flags.name, "name", "", "name of the handler, if several register in --dir")
	set.StringVar(&flags.details, "details-file", "", "file with discoveryDetails that the handler accepts; without it they are empty")
	set.StringArrayVar(&flags.invalid, "invalid-details-file", nil, "file with discoveryDetails that the handler must refuse; may be repeated")
	set.StringArrayVar(&flags.properties, "property", nil, "discoveryProperty as `NAME=VALUE`, or NAME=@FILE; may be repeated")
	set.IntVar(&flags.devices, "min-devices", 0, "how many devices the handler must find")
	set.DurationVar(&flags.timeout, "timeout", 10*time.Second, "how long to wait for a list, a refusal, a registration or the devices")
	set.DurationVar(&flags.quiet, "observe", time.Second, "how long to observe an open call")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return flags.run(cmd.Context(), cmd.OutOrStdout()) }
	return cmd
}

func (f *checkFlags) run(ctx context.Context, out io.Writer) error {
	what, err := f.read()
	if err != nil {
		return err
	}
	if (f.endpoint == "") == (f.dir == "") {
		return errors.New("set either --endpoint or --dir")
	}
	var results []conformance.Result
	if f.dir == "" {
		results = conformance.Check(ctx, f.endpoint, what)
	} else {
		agent, err := conformance.ListenAgent(f.dir)
		if err != nil {
			return fmt.Errorf("--dir: %w", err)
		}
		defer agent.Close()
		fmt.Fprintf(out, "Waiting for a handler to register in %s\n", f.dir)
		results = agent.Check(ctx, f.name, what)
	}
	if err := printResults(out, results); err != nil {
		return err
	}
	if slices.ContainsFunc(results, func(result conformance.Result) bool { return result.Err != nil }) {
		return errors.New("the handler breaks rules")
	}
	return ctx.Err()
}

// read returns the case with the contents of the files.
func (f *checkFlags) read() (conformance.Case, error) {
	what := conformance.Case{
		Properties: map[string][]byte{}, MinDevices: f.devices, Patience: f.timeout, Quiet: f.quiet,
	}
	if f.details != "" {
		text, err := os.ReadFile(f.details)
		if err != nil {
			return what, fmt.Errorf("--details-file: %w", err)
		}
		what.Details = string(text)
	}
	for _, name := range f.invalid {
		text, err := os.ReadFile(name)
		if err != nil {
			return what, fmt.Errorf("--invalid-details-file: %w", err)
		}
		what.Invalid = append(what.Invalid, string(text))
	}
	for _, pair := range f.properties {
		name, value, found := strings.Cut(pair, "=")
		if !found || name == "" {
			return what, fmt.Errorf("--property %s: want NAME=VALUE or NAME=@FILE", name) // the value may be secret
		}
		what.Properties[name] = []byte(value)
		if file, isFile := strings.CutPrefix(value, "@"); isFile {
			text, err := os.ReadFile(file)
			if err != nil {
				return what, fmt.Errorf("--property %s: %w", name, err)
			}
			what.Properties[name] = text
		}
	}
	return what, nil
}

// printResults prints a line for each rule.
func printResults(out io.Writer, results []conformance.Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RESULT\tRULE\tTIME\tREASON")
	for _, result := range results {
		verdict, reason := "pass", ""
		switch {
		case result.Err != nil:
			verdict, reason = "FAIL", result.Err.Error()
		case result.Skipped != "":
			verdict, reason = "skip", result.Skipped
		}
		fmt.Fprintf(table, "%s\t%s\t%v\t%s\n", verdict, result.Rule, result.Took.Round(time.Millisecond), reason)
	}
	return table.Flush()
}
