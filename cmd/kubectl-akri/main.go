// Command kubectl-akri checks Configurations and shows the objects that Akri creates
// from them. It runs standalone or, as "kubectl akri …", as a kubectl plugin.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/offline"
	"akri.sh/akri/internal/manpages"
	"akri.sh/akri/internal/version"
)

func main() {
	streams := cli.Streams{In: os.Stdin, Out: cli.Printable(os.Stdout), Err: cli.Printable(os.Stderr)}
	root := newRoot(streams)
	if err := root.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		if text := err.Error(); text != "" {
			fmt.Fprintln(streams.Err, "error:", text)
		}
		os.Exit(cli.ExitCode(err))
	}
}

func newRoot(streams cli.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-akri",
		Short:         "Check Configurations, and inspect devices and their objects",
		Version:       version.Text(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl akri"},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.AddCommand(newTree(streams), newNodes(streams), newDiff(streams), newExplain(streams), newRBAC(streams), newWhy(streams),
		newVersion(streams), newMigrate(streams))
	root.AddCommand(offline.Commands(streams)...)
	root.InitDefaultCompletionCmd()
	root.AddCommand(manpages.NewCommand())
	return root
}
