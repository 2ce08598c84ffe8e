package offline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/manifest"
)

// Commands returns all commands of this package.
func Commands(streams cli.Streams) []*cobra.Command {
	return []*cobra.Command{newRender(streams), newConvert(streams), newLint(streams), newTest(streams), newInit(streams)}
}

// noArgs rejects arguments, which are most likely files.
func noArgs(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments: use -f %s", command.Name(), args[0])
	}
	return nil
}

// errFound returns the error of a command that has shown count errors.
func errFound(count int, consequence string) error {
	return errors.New(manifest.Count(count, "error") + " found" + consequence)
}
