package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/cmd/kubectl-akri/cli"
)

func newWhy(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "why (NAME | KIND/NAME | KIND NAME)",
		Short: "Show why a device is not in use, and what to do about it",
		Long: `Show why a device is not in use, and what to do about it.

The name is that of an Instance, a Configuration, a Pod, or an object that Akri created,
such as a Service. An Instance or a Configuration is preferred to other objects of the
same name.`,
		Example: `  kubectl akri why akri-debug-echo-8120fe
  kubectl akri why configuration/akri-debug-echo
  kubectl akri why -n plant pod/door-cam-da9268-pod`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: a.completion(&v0.InstanceList{}),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
		if !found {
			kind, name = "", kind
		}
		if name == "" || found && kind == "" || strings.Contains(name, "/") {
			return cli.Usage(command, errors.New("specify a name: NAME, KIND/NAME or KIND NAME, as in pod/door-cam"))
		}
		api, err := a.connect(streams.Err, nil)
		if err != nil {
			return err
		}
		facts, err := api.facts.Why(command.Context(), kind, api.namespace, name)
		defer printNotes(streams, facts.Unread)
		if err != nil {
			return err
		}
		return output.Print(streams.Out, facts, facts.Text)
	}
	output.AddFlag(command)
	return command
}
