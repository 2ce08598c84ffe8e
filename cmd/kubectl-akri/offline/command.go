package offline

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Streams is where commands read and write.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Commands is all commands of this package.
func Commands(streams Streams) []*cobra.Command {
	commands := []*cobra.Command{newRender(streams), newConvert(streams), newLint(streams), newTest(streams)}
	for _, command := range commands {
		args := command.Args
		command.Args = func(command *cobra.Command, given []string) error {
			if err := args(command, given); err != nil {
				return usage(command, err)
			}
			return nil
		}
		command.SetFlagErrorFunc(usage)
	}
	return commands
}

// Exit codes.
const (
	exitWrong   = 1 // something is wrong with what was given
	exitTrouble = 2 // called wrongly, or a file cannot be read
)

// exitError is an error that says how the program ends.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is how a program ends that a command has left with err.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, is := errors.AsType[*exitError](err); is {
		return e.code
	}
	return 1
}

// usage says that a command was called wrongly.
func usage(command *cobra.Command, err error) error {
	return &exitError{exitTrouble, fmt.Errorf("%w\nSee 'kubectl akri %s --help' for usage", err, command.Name())}
}

// noArgs refuses arguments, which are files most likely.
func noArgs(command *cobra.Command, given []string) error {
	if len(given) > 0 {
		return fmt.Errorf("%s takes files by flag: write -f %s", command.Name(), given[0])
	}
	return nil
}

func unreadable(err error) error { return &exitError{exitTrouble, err} }

// wrong says how many mistakes there are; they were shown before.
func wrong(count int, consequence string) error {
	return &exitError{exitWrong, fmt.Errorf("%s%s", plural(count, "mistake"), consequence)}
}

func plural(count int, what string) string {
	if count == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", count, what)
}
