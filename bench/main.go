package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/cluster"
)

// options are the settings of a run; the flags describe them.
type options struct {
	Only      []string
	Instances []int
	Rounds    int
	Samples   int
	Devices   int
	Idle      time.Duration
}

// The bounds of options: what a control plane on one machine bears, and what an agent
// publishes for one namespace.
const (
	maxInstances = 5000
	maxDevices   = 1000
)

// parts are all parts, in the order in which they are measured.
var parts = []string{"converge", "restart", "churn", "repair", "agent"}

// bench is a run.
type bench struct {
	options
	report

	dir string // for the programs, and what the control planes leave
}

func main() {
	cluster.Reexec()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Measure Akri's controller and an agent against a bare client",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := root.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Only, "only", parts, "parts to measure")
	flags.IntSliceVar(&o.Instances, "instances", []int{300, 1000},
		"numbers of Instances in the part converge; restart, churn and repair use the last number")
	flags.IntVar(&o.Rounds, "rounds", 3, "how many times the controller and the bare client are measured in the part converge")
	flags.IntVar(&o.Samples, "samples", 100, "number of edits and of deletions that are repaired, of messages of a handler and of Pods")
	flags.IntVar(&o.Devices, "devices", manyDevices, "number of devices with which the memory of the agent is measured")
	flags.DurationVar(&o.Idle, "idle", 30*time.Second, "how long the controller and the agent are observed at rest")
	return root
}

func (o options) validate() error {
	for _, part := range o.Only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("--only: unknown part %q: choose from %s", part, strings.Join(parts, ", "))
		}
	}
	if len(o.Instances) == 0 || slices.Min(o.Instances) < 1 || slices.Max(o.Instances) > maxInstances {
		return fmt.Errorf("--instances: got %v: choose numbers from 1 to %d", o.Instances, maxInstances)
	}
	if o.Devices < 1 || o.Devices > maxDevices {
		return fmt.Errorf("--devices: got %d: choose a number from 1 to %d", o.Devices, maxDevices)
	}
	if o.Rounds < 1 || o.Samples < 1 || o.Idle <= 0 {
		return fmt.Errorf("--rounds, --samples, --idle: got %d, %d and %v: all must be positive", o.Rounds, o.Samples, o.Idle)
	}
	return nil
}

// run takes the measurements and prints the table. It leaves nothing behind. The figures
// so far are printed even if a later part fails.
func run(ctx context.Context, o options, out, log io.Writer) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "akri-bench-")
	if err != nil {
		return fmt.Errorf("create a directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{options: o, dir: dir, report: report{log: log}}
	b.logf("building the programs")
	if err := buildPrograms(ctx, dir); err != nil {
		return err
	}
	machine, err := describeMachine()
	if err != nil {
		return err
	}
	measured := b.measure(ctx)
	return errors.Join(measured, b.print(out, machine))
}

// measure runs the requested parts.
func (b *bench) measure(ctx context.Context) error {
	steps := map[string]func(context.Context) error{
		"converge": b.converge, "restart": b.restart, "churn": b.churn, "repair": b.repair, "agent": b.agent,
	}
	for _, part := range parts {
		if !slices.Contains(b.Only, part) {
			continue
		}
		b.logf("part %s", part)
		if err := steps[part](ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}
