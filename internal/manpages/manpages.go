// Package manpages writes the manual pages of a program from the help of its commands.
package manpages

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"akri.sh/akri/internal/version"
)

// NewCommand returns the hidden command man, which writes a manual page for each
// command of its root into a directory. The packages contain these pages. If
// SOURCE_DATE_EPOCH is set, it is the date of the pages.
func NewCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write manual pages into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			root := command.Root()
			root.DisableAutoGenTag = true // it has the date
			header := doc.GenManHeader{Section: "1", Source: "Akri " + version.String(), Manual: "Akri"}
			if err := doc.GenManTree(root, &header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
