package main

import (
	"cmp"
	"fmt"

	"github.com/spf13/pflag"

	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/embeddable"
)

const debugEchoManual = `debug-echo runs the handler debugEcho, for trials and tests. It reports one device
for each description in discoveryDetails.

    discoveryHandler:
      name: debugEcho
      discoveryDetails: |
        descriptions:
        - foo0
        - foo1

It is the device's id and its property DEBUG_ECHO_DESCRIPTION. While the
availability file contains the word OFFLINE, there are no devices.

The environment variables in parentheses are the defaults of the flags.`

func debugEchoCommand(environment func(string) string) command {
	var shared, file string
	return command{
		use: "debug-echo", short: "Find the devices that the Configuration lists", manual: debugEchoManual,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&shared, "shared", environment(debugecho.SharedVariable),
				"whether several nodes see the same devices: true or false (DEBUG_ECHO_INSTANCES_SHARED); required")
			flags.StringVar(&file, "availability-file", cmp.Or(environment(debugecho.AvailabilityVariable), debugecho.DefaultAvailabilityFile),
				"file that makes the devices disappear while it contains OFFLINE (DEBUG_ECHO_AVAILABILITY_FILE)")
		},
		handler: func() (embeddable.Handler, error) {
			isShared, err := debugecho.ParseShared(shared)
			if err != nil {
				return embeddable.Handler{}, fmt.Errorf("--shared, or the environment variable %w", err)
			}
			return embeddable.DebugEcho(isShared, file), nil
		},
	}
}
