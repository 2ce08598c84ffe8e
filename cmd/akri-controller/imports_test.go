package main

import (
	"os/exec"
	"strings"
	"testing"
)

// gRPC's tracing calls methods by name, so the linker would keep every method of
// every package: 13 MB more for a program that edge clusters hold in memory.
func TestImports(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.Lines(string(list)) {
		if dependency = strings.TrimSpace(dependency); dependency == "google.golang.org/grpc" || dependency == "akri.sh/akri/agent" {
			t.Errorf("the controller imports %s", dependency)
		}
	}
}
