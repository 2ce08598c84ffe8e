package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageWidth is the width of the descriptions of flags.
const usageWidth = 100

// printUsage prints what cobra's template does, with wrapped descriptions. A template
// would make the linker keep all exported methods of the program, 2 MB of it.
func printUsage(cmd *cobra.Command) error {
	var text strings.Builder
	text.WriteString("Usage:")
	if cmd.Runnable() {
		fmt.Fprintf(&text, "\n  %s", cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n  %s [command]", cmd.CommandPath())
	}
	if cmd.HasExample() {
		fmt.Fprintf(&text, "\n\nExamples:\n%s", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		text.WriteString("\n\nAvailable Commands:")
		for _, each := range cmd.Commands() {
			if each.IsAvailableCommand() || each.Name() == "help" {
				fmt.Fprintf(&text, "\n  %-*s %s", each.NamePadding(), each.Name(), each.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		flags := strings.TrimRight(cmd.LocalFlags().FlagUsagesWrapped(usageWidth), " \n")
		fmt.Fprintf(&text, "\n\nFlags:\n%s", flags)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&text, "\n\nUse \"%s [command] --help\" for more information about a command.", cmd.CommandPath())
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), text.String())
	return err
}
