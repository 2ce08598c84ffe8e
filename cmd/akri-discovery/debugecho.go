package main

import (
	"github.com/spf13/cobra"

	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/embeddable"
)

func newDebugEcho(environment func(string) string) *cobra.Command {
	var serve serveFlags
	var shared string
	file := environment(debugecho.AvailabilityVariable)
	if file == "" {
		file = debugecho.DefaultAvailabilityFile
	}
	cmd := &cobra.Command{
		Use:   "debug-echo",
		Short: "Find the devices that the Configuration lists",
		Long: `debug-echo runs the handler debugEcho, for trials and tests. It reports one device
for each description in discoveryDetails.

    discoveryHandler:
      name: debugEcho
      discoveryDetails: |
        descriptions:
        - foo0
        - foo1

It is the device's id and its property DEBUG_ECHO_DESCRIPTION. While the
availability file contains the word OFFLINE, there are no devices.

The environment variables in parentheses are the defaults of the flags.`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&shared, "shared", environment(debugecho.SharedVariable),
		"whether several nodes see the same devices: true or false (DEBUG_ECHO_INSTANCES_SHARED); required")
	cmd.Flags().StringVar(&file, "availability-file", file,
		"file that makes the devices disappear while it contains OFFLINE (DEBUG_ECHO_AVAILABILITY_FILE)")
	serve.add(cmd, environment)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var err error
		if serve.options.Shared, err = boolOf("shared", debugecho.SharedVariable, shared); err != nil {
			return err
		}
		return serve.serveEmbeddable(cmd, embeddable.DebugEcho(serve.options.Shared, file))
	}
	return cmd
}
