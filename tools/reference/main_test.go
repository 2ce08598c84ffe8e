package main

import (
	"slices"
	"testing"
)

// TestSubcommands checks that no command that a program lists can be forgotten.
func TestSubcommands(t *testing.T) {
	const help = `Does things.

Usage:
  program [command]

Examples:
  program one  # a comment

Available Commands:
  completion  Generate the autocompletion script for the specified shell
  debug-echo  Pretend
  help        Help about any command
  udev        Find devices

Flags:
  -h, --help   help for program
`
	if got, want := subcommands([]byte(help)), []string{"debug-echo", "udev"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	const usages = `Usage:
  program [flags]             run
  program pre-delete [flags]  delete

Does things.
`
	if got, want := subcommands([]byte(usages)), []string{"pre-delete"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := subcommands([]byte("Usage:\n  program check [flags]\n\nFlags:\n")); len(got) > 0 {
		t.Errorf("got %v of a command's own usage", got)
	}
}
