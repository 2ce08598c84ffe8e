// Command kubectl-akri checks Configurations and shows the objects that Akri creates
// from them. It runs standalone or, as "kubectl akri …", as a kubectl plugin.
package main

import (
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	// What libraries log is not for users. Without a logger, controller-runtime complains after half a minute.
	ctrl.SetLogger(logr.Discard())
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
	a := newAccess()
	online := []*cobra.Command{
		newTree(streams, a), newNodes(streams, a), newDiff(streams, a), newExplain(streams, a), newRBAC(streams, a),
		newWhy(streams, a), newVersion(streams, a), newDiscover(streams, a), newCheck(streams, a),
	}
	for _, command := range online {
		command.Flags().AddFlagSet(a.set)
	}
	root.AddCommand(append(online, newMigrate(streams, a))...)
	root.AddCommand(offline.Commands(streams)...)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	root.AddCommand(manpages.NewCommand())
	cli.ReportUsage(root)
	listAccessOnce(root, a.set)
	return root
}

// listAccessOnce makes only the help of root list the flags that select the cluster. Helps do
// not show that a command that has others can be run without one, which prints the help.
func listAccessOnce(root *cobra.Command, flags *pflag.FlagSet) {
	usage, list := root.UsageFunc(), flags.FlagUsages()
	root.SetUsageFunc(func(command *cobra.Command) error {
		flags.VisitAll(func(flag *pflag.Flag) { flag.Hidden = true })
		run := command.RunE
		if command.HasSubCommands() {
			command.RunE = nil
		}
		err := usage(command)
		command.RunE = run
		if command == root {
			command.Printf("\nFlags of the commands that need a cluster:\n%s", list)
		} else if command.Flags().Lookup("kubeconfig") != nil {
			command.Printf("\nUse \"%s --help\" for the flags that select the cluster, the user and, where it matters, the namespace.\n",
				root.CommandPath())
		}
		return err
	})
}
