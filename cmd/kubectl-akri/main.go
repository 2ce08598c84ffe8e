// Command kubectl-akri shows people what Akri does. As "kubectl akri …" it is a
// plugin of kubectl, and it works alone.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"akri.sh/akri/cmd/kubectl-akri/offline"
)

func main() {
	root := newRoot(offline.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(os.Stderr, "error:", text)
		}
		os.Exit(offline.ExitCode(err))
	}
}

func newRoot(streams offline.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-akri",
		Short:         "See and check what Akri does with your devices",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl akri"},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(newTree(streams), newDiff(streams), newExplain(streams), newRBAC(streams), newWhy(streams))
	root.AddCommand(offline.Commands(streams)...)
	return root
}
