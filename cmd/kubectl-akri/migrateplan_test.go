package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"akri.sh/akri/internal/apitest"
)

// script runs a script with the world's kubeconfig, and returns its output and how it
// ended.
func (w *world) script(text string) (string, error) {
	w.T.Helper()
	command := exec.CommandContext(w.T.Context(), "sh", "-c", text)
	command.Dir = w.T.TempDir()
	path := filepath.Dir(apitest.Kubectl(w.T)) + string(filepath.ListSeparator) + os.Getenv("PATH")
	command.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "PATH="+path)
	output, err := command.CombinedOutput()
	return string(output), err
}

// testElsewhere runs the script of a plan against another cluster: it stops before its
// first step. In its own cluster, it gets there.
func (w *world) testElsewhere(t *testing.T, plan string) {
	guard, _, found := strings.Cut(plan, "\n# 1. ")
	if !found {
		t.Fatalf("no steps:\n%s", plan)
	}
	const first = "\necho the first step\n"
	if output, err := newWorld(t).script(guard + first); err == nil || !strings.HasPrefix(output, "cluster: it is not the one") {
		t.Errorf("in another cluster: %v\n%s", err, output)
	}
	if output, err := w.script(guard + first); err != nil || output != "the first step\n" {
		t.Errorf("in its own cluster: %v\n%s", err, output)
	}
}
