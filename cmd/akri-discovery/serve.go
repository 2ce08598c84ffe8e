package main

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/cobra"

	"akri.sh/akri/discovery"
)

// serveFlags are the flags of every handler.
type serveFlags struct {
	options discovery.Options
	level   string
}

func (f *serveFlags) add(cmd *cobra.Command, environment func(string) string) {
	directory := environment("DISCOVERY_HANDLERS_DIRECTORY")
	if directory == "" {
		directory = discovery.DefaultDirectory
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.Directory, "discovery-handlers-dir", directory,
		"directory of the agent's socket and of this handler's (DISCOVERY_HANDLERS_DIRECTORY)")
	flags.StringVar(&f.options.Host, "pod-ip", environment("POD_IP"),
		"listen at this address instead of a socket in the directory; the agent must reach it (POD_IP)")
	flags.IntVar(&f.options.Port, "port", discovery.DefaultPort, "port to listen at if there is a --pod-ip")
	flags.StringVar(&f.level, "log-level", "info", "least level to log: debug, info, warn or error")
}

func (f *serveFlags) serve(cmd *cobra.Command, name string, handler discovery.Handler) error {
	var least slog.Level
	if err := least.UnmarshalText([]byte(f.level)); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", f.level)
	}
	f.options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: least}))
	slog.SetDefault(f.options.Logger)
	return discovery.Serve(cmd.Context(), name, handler, f.options)
}

// boolOf reads true or false from a flag that may come from a variable.
func boolOf(flag, variable, text string) (bool, error) {
	switch value, err := strconv.ParseBool(text); {
	case text == "":
		return false, fmt.Errorf("it is not said whether several nodes see the same devices: use --%s, or the environment variable %s, with true or false", flag, variable)
	case err != nil:
		return false, fmt.Errorf("--%s (%s) is %q: want true or false", flag, variable, text)
	default:
		return value, nil
	}
}
