package offline

import (
	"github.com/spf13/cobra"
)

// ReadConfigurations reads the Configurations in files, folders and, for -,
// standard input. What cannot be read is told on stderr with its place.
func ReadConfigurations(command *cobra.Command, streams Streams, names []string) ([]map[string]any, error) {
	all, err := readInput(command, streams, names)
	if err != nil {
		return nil, err
	}
	var findings []finding
	for _, f := range all {
		if f.broken != nil {
			findings = append(findings, ofBroken(f))
		}
	}
	found := all.ofKind("Configuration")
	if len(findings) == 0 && len(found) == 0 {
		findings = append(findings, noConfiguration(all))
	}
	if count := show(streams.Err, findings, all); count > 0 {
		return nil, unreadable(wrong(count, ""))
	}
	configurations := make([]map[string]any, len(found))
	for i, document := range found {
		configurations[i] = document.Object()
	}
	return configurations, nil
}

// Misused is the error of a command that was called wrongly.
func Misused(command *cobra.Command, err error) error { return usage(command, err) }

// Trouble is an error by which the program ends with 2 instead of 1.
func Trouble(err error) error { return unreadable(err) }

// Exit ends the program with a code and without a word: all has been said.
func Exit(code int) error { return &exitError{code, errSilent{}} }

type errSilent struct{}

func (errSilent) Error() string { return "" }
