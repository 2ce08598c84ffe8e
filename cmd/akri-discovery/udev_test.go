package main

import (
	"bytes"
	"strings"
	"testing"

	udev "akri.sh/akri/discovery/udev/details"
)

// TestUDEVHelp checks that the example in --help is accepted and names all keys.
func TestUDEVHelp(t *testing.T) {
	root := newRoot(func(string) string { return "" })
	var out bytes.Buffer
	root.SetArgs([]string{"udev", "--help"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "discoveryDetails: |\n")
	example, _, found := strings.Cut(rest, "\n\n")
	if !found {
		t.Fatalf("no example in\n%s", out.String())
	}
	parsed, err := udev.Parse(example)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed.Rules) != 1 || len(parsed.Rules[0]) != 3 || len(parsed.Properties) != 1 {
		t.Errorf("parsed %+v", parsed)
	}
	for _, want := range []string{
		"udevRules", "groupRecursive", "permissions", "properties", "id ", "symlinks", "containerPath", "UDEV_DEVNODE_0", "--udev-dir",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("--help does not mention %s", want)
		}
	}
}
