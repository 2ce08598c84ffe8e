package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
)

func newExplain(streams cli.Streams, a access) *cobra.Command {
	var output cli.Output
	command := &cobra.Command{
		Use:   "explain (KIND NAME | KIND/NAME)",
		Short: "Show which template and values an object was rendered from",
		Example: `  kubectl akri explain deployment akri-debug-echo-8120fe
  kubectl akri explain svc/akri-debug-echo-8120fe-svc
  kubectl akri explain pod/akri-debug-echo-8120fe-6c8c97c77b-fl2x2  # of a Deployment`,
		Args: cobra.RangeArgs(1, 2),
	}
	command.RunE = func(command *cobra.Command, args []string) error {
		kind, name, found := strings.Cut(strings.Join(args, "/"), "/")
		if !found || kind == "" || name == "" || strings.Contains(name, "/") {
			return cli.Usage(command, errors.New("specify an object: KIND NAME or KIND/NAME, as in pod/door-cam"))
		}
		api, err := a.connect(streams.Err, nil)
		if err != nil {
			return err
		}
		explanation, err := api.facts.Explain(command.Context(), kind, api.namespace, name)
		if err != nil {
			return err
		}
		return output.Print(streams.Out, explanation, explanation.Text)
	}
	output.AddFlag(command)
	return command
}
