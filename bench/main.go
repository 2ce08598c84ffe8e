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

	"akri.sh/akri/bench/hollow"
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
		Short:         "Measure Akri's controller and agents against a bare client",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := root.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&o.Only, "only", nil,
		"parts to measure: "+strings.Join(parts, ",")+" (default all but "+strings.Join(longParts, ", ")+")")
	flags.IntSliceVar(&o.Instances, "instances", []int{100, 500},
		"numbers of Instances to converge; the other parts use the last number")
	flags.IntVar(&o.Rounds, "rounds", 3, "how many times the controller and the bare client are measured")
	flags.IntVar(&o.Growth, "growth", maxInstances, "number of Instances in the parts growth and rollout")
	flags.BoolVar(&o.Controllers, "controllers", false, "run all controllers of kube-controller-manager during the measurements")
	flags.DurationVar(&o.Idle, "idle", time.Minute, "how long the idle controller is observed")
	flags.IntVar(&o.Repairs, "repairs", 200, "number of edits, and of deletions, that are repaired")
	flags.IntVar(&o.Foreign, "foreign", 10_000, "number of unrelated objects in the part memory")
	flags.IntVar(&o.Messages, "messages", 100, "number of messages of a handler in the part agent")
	flags.IntVar(&o.Allocations, "allocations", maxAllocations, "number of calls of Allocate in the part agent")
	flags.IntVar(&o.Devices, "devices", manyDevices, "number of devices with which the memory of the agent is measured")
	flags.StringSliceVar(&o.Shapes, "shapes", []string{"local:20x20", "shared:100x10", "shared:10x20"},
		"devices and nodes in the part fleet, each as local:DEVICESxNODES, with that many devices on each node, or shared:DEVICESxNODES, "+
			"to which +OTHERS adds nodes without agents before further ones join")
	flags.IntVar(&o.Joins, "joins", 10, "number of nodes that join the shared devices in the part fleet, one after the other")
	flags.DurationVar(&o.Rest, "rest", 12*time.Second, "how long settled agents are observed in the parts agent and fleet")
	flags.StringVar(&o.Profiles, "profiles", "", "`directory` for CPU and heap profiles; the controller is then built with a profiler")
	flags.StringVar(&o.JSON, "json", "", "`file` for the raw numbers")
	root.AddCommand(newHollowAgents())
	return root
}

// newHollowAgents returns the command that package hollow starts.
func newHollowAgents() *cobra.Command {
	return &cobra.Command{
		Use: hollowCommand + " KUBECONFIG DIRECTORY", Hidden: true, Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			return hollow.Serve(cmd.Context(), arguments[0], arguments[1], os.Stdin, os.Stdout)
		},
	}
}
