// Command bench measures Akri's controller beside a bare client and prints a
// table.
//
//	bench --instances 100,500 --only converge,restart
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/cluster"
)

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
	o := options{Out: os.Stdout, Log: os.Stderr}
	root := &cobra.Command{
		Use:           "bench",
		Short:         "Measure Akri's controller beside a bare client",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := root.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Only, "only", nil, "parts to measure: "+strings.Join(parts, ",")+" (default all but growth)")
	flags.IntSliceVar(&o.Instances, "instances", []int{100, 500}, "numbers of Instances to converge; the other parts are measured with the last")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often controller and bare client take turns")
	flags.IntVar(&o.Growth, "growth", maxInstances, "Instances of part growth")
	flags.DurationVar(&o.Idle, "idle", time.Minute, "how long the controller is watched at rest")
	flags.IntVar(&o.Repairs, "repairs", 200, "edits and deletions that are repaired")
	flags.IntVar(&o.Foreign, "foreign", 10_000, "objects of others in part memory")
	flags.IntVar(&o.Kills, "kill", 20, "how often the controller is killed")
	flags.Uint64Var(&o.Seed, "seed", uint64(time.Now().UnixNano()), "decides when it is killed")
	flags.StringVar(&o.Profiles, "profiles", "", "`folder` for CPU and heap profiles of a controller built with a profiler")
	flags.StringVar(&o.JSON, "json", "", "`file` for the raw numbers")
	return root
}
