package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"akri.sh/akri/kubebox/cluster"
)

// defaultDir is the default run directory.
const defaultDir = "/tmp/akri-cluster"

func main() {
	cluster.Reexec()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	if exit, ok := errors.AsType[*cluster.ExitError](err); ok {
		os.Exit(exit.Status) // the command has printed its own error
	}
	fmt.Fprintln(os.Stderr, "cluster:", err)
	os.Exit(1)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "Run real Kubernetes clusters on this machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	dir := root.PersistentFlags().String("dir", defaultDir, "run directory of the cluster; it contains sockets, so its path must be short")
	root.AddCommand(
		newBuild(), newImage(),
		newUp(dir), newDown(dir), newStatus(dir), newKubeconfig(dir),
		newKubectl(dir), newExec(dir), newLoad(dir), newDo(dir),
	)
	return root
}
