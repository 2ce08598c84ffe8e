package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

var formats = []string{"json", "yaml"}

// Output is the value of the flag -o: json, yaml, or "" for text.
type Output string

// AddFlag adds the flag to command.
func (o *Output) AddFlag(command *cobra.Command) {
	command.Flags().VarP(o, "output", "o", "output `format`: json or yaml (default: text)")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

func (o *Output) String() string { return string(*o) }

// Type names the value in help.
func (o *Output) Type() string { return "format" }

// Set sets the format.
func (o *Output) Set(format string) error {
	if !slices.Contains(formats, format) {
		return errors.New("use json or yaml")
	}
	*o = Output(format)
	return nil
}

// Print writes value in the format, or calls text.
func (o Output) Print(out io.Writer, value any, text func(io.Writer) error) error {
	var content []byte
	var err error
	switch o {
	case "json":
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	case "yaml":
		content, err = yaml.Marshal(value)
	default:
		return text(out)
	}
	if err != nil {
		return fmt.Errorf("write as %s: %w", o, err)
	}
	if _, err := out.Write(content); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
