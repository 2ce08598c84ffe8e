package main

import (
	"bytes"
	"strings"
	"testing"

	"akri.sh/akri/discovery/onvif/details"
)

// TestHelpOfONVIF checks that the details in --help are valid and complete.
func TestHelpOfONVIF(t *testing.T) {
	root := newRoot(func(string) string { return "" })
	var out bytes.Buffer
	root.SetArgs([]string{"onvif", "--help"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out.String(), "discoveryDetails: |\n")
	example, _, found := strings.Cut(rest, "\nAll keys")
	if !found {
		t.Fatalf("no example in\n%s", out.String())
	}
	example = strings.ReplaceAll(example, "        ", "")
	if err := details.Validate(example); err != nil {
		t.Errorf("the example is not valid: %v\n%s", err, example)
	}
	for _, want := range []string{"misses", "interfaces", "username_default", "ONVIF_STREAM_URI", "--discovery-handlers-dir"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("--help does not mention %s", want)
		}
	}
}
