package main

import (
	"strings"
	"testing"
)

// Arguments that contradict each other are refused before anything is done.
func TestArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		"":                                      usage,
		"up down":                               usage,
		"sideways":                              usage,
		"--cluster=mine up":                     "--cluster=mine: only the value current is known",
		"--registry=r.example/akri up":          "only for --cluster=current",
		"--yes down":                            "only for --cluster=current",
		"--dir=/tmp/other --cluster=current up": "--dir is only for a cluster that is started",
	} {
		if err := run(t.Context(), strings.Fields(arguments)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("demo %s: %v, want %q", arguments, err, want)
		}
	}
}
