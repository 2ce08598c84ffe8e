package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes other than 0.
const (
	exitProblem = 1 // the input has a problem
	exitFailed  = 2 // the call is wrong, or the command could not do its work
)

// exitError is an error with the exit code it leads to.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode returns the exit code of a program whose command returned err.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	return exitProblem
}

// Failed marks err as a failure of the command itself, such as a file that cannot
// be read. The exit code is 2.
func Failed(err error) error { return &exitError{exitFailed, err} }

// Exit ends the program with code and prints nothing.
func Exit(code int) error { return &exitError{code, errors.New("")} }

// Usage marks err as a wrong call of command and points to its help. The exit code
// is 2.
func Usage(command *cobra.Command, err error) error {
	return Failed(fmt.Errorf("%w\nSee '%s --help' for usage", err, command.CommandPath()))
}

// ReportUsage makes command and those below it report wrong flags and arguments as usage
// errors. A command with subcommands prints its help if none is given.
func ReportUsage(command *cobra.Command) {
	command.SetFlagErrorFunc(Usage)
	validate := command.Args
	if command.Name() == "help" {
		validate = helpTopic
	}
	if command.HasSubCommands() {
		validate = subcommandOnly
		command.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
		command.DisableFlagsInUseLine = true
		command.SuggestionsMinimumDistance = 2 // letters, as in cobra
	}
	command.Args = func(command *cobra.Command, args []string) error {
		if err := validate(command, args); err != nil {
			return Usage(command, err)
		}
		return nil
	}
	for _, subcommand := range command.Commands() {
		ReportUsage(subcommand)
	}
}

// helpTopic rejects words after "help" that name no command.
func helpTopic(help *cobra.Command, args []string) error {
	command, rest, err := help.Root().Find(args)
	if err != nil || !command.HasSubCommands() {
		return err
	}
	return subcommandOnly(command, rest)
}

// subcommandOnly rejects arguments: cobra passes on what names no subcommand.
func subcommandOnly(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, subcommand := range command.Commands() {
		if subcommand.IsAvailableCommand() {
			known = append(known, subcommand.Name())
		}
	}
	remedy := "use one of " + strings.Join(known, ", ")
	if similar := command.SuggestionsFor(args[0]); len(similar) > 0 {
		remedy = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return fmt.Errorf("%s has no command %q; %s", command.CommandPath(), args[0], remedy)
}
