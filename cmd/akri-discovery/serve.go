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
	dir := environment("DISCOVERY_HANDLERS_DIRECTORY")
	if dir == "" {
		dir = discovery.DefaultDir
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.options.Dir, "discovery-handlers-dir", dir,
		"directory of the agent's and this handler's sockets (DISCOVERY_HANDLERS_DIRECTORY)")
	flags.StringVar(&f.options.Host, "pod-ip", environment("POD_IP"),
		"listen on this address, which the agent must reach, instead of a socket in the directory (POD_IP)")
	flags.IntVar(&f.options.Port, "port", discovery.DefaultPort, "port to listen on; only with --pod-ip")
	flags.StringVar(&f.level, "log-level", "info", "minimum level to log: debug, info, warn or error")
}

func (f *serveFlags) serve(cmd *cobra.Command, name string, handler discovery.Handler) error {
	var minimum slog.Level
	if err := minimum.UnmarshalText([]byte(f.level)); err != nil {
		return fmt.Errorf("--log-level %q: want debug, info, warn or error", f.level)
	}
	f.options.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: minimum}))
	slog.SetDefault(f.options.Logger)
	return discovery.Serve(cmd.Context(), name, handler, f.options)
}

// boolOf parses a flag whose default is an environment variable.
func boolOf(flag, variable, text string) (bool, error) {
	switch value, err := strconv.ParseBool(text); {
	case text == "":
		return false, fmt.Errorf("--%s is not set: set it, or the environment variable %s, to true or false", flag, variable)
	case err != nil:
		return false, fmt.Errorf("--%s (%s) is %q: want true or false", flag, variable, text)
	default:
		return value, nil
	}
}
