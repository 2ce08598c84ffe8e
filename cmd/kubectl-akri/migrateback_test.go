package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"akri.sh/akri/internal/apitest"
)

// kubectl runs kubectl with the world's kubeconfig, and returns its output.
func (w *world) kubectl(arguments ...string) string {
	w.T.Helper()
	command := exec.CommandContext(w.T.Context(), apitest.Kubectl(w.T), append(arguments, "--kubeconfig="+w.kubeconfig)...)
	var failure strings.Builder
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		w.T.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, failure.String())
	}
	return strings.TrimSpace(string(output))
}

// TestWayBack takes this Akri out next to the original, by the commands of
// docs/migrate-from-akri.md for an installation by kubectl. All of the original stays,
// although its objects have the same labels, and so do the definitions.
func TestWayBack(t *testing.T) {
	page, err := os.ReadFile("../../docs/migrate-from-akri.md")
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(page), "\nIf you installed with kubectl, use these instead.")
	_, commands, _ = strings.Cut(commands, "\n\n")
	commands, _, _ = strings.Cut(commands, "\n\n")

	w := newAkriWorld(t, "installation.yaml")
	w.kubectl("apply", "--server-side", "--force-conflicts", "-k", "../../config/default")
	const akri = "testdata/migrate/installation.yaml"
	before := w.kubectl("get", "-f", akri, "-o", "jsonpath={.items[*].metadata.uid}")
	deletions := 0
	for line := range strings.Lines(commands) {
		command, found := strings.CutPrefix(strings.TrimSpace(line), "kubectl ")
		if !found {
			t.Fatalf("%q is no command of kubectl", line)
		}
		// Nothing here removes the content of a namespace, for which kubectl would wait.
		command = strings.ReplaceAll(command, "-k config/", "-k ../../config/") + " --wait=false"
		w.kubectl(strings.Fields(command)...)
		deletions++
	}
	if deletions < 4 {
		t.Errorf("the page has only %d commands:\n%s", deletions, commands)
	}
	if after := w.kubectl("get", "-f", akri, "-o", "jsonpath={.items[*].metadata.uid}"); after != before {
		t.Errorf("the original was\n%s\nand is now\n%s", before, after)
	}
	for _, dir := range []string{"policy", "rbac", "webhook"} {
		if left := w.kubectl("get", "-k", "../../config/"+dir, "--ignore-not-found", "-o", "name"); left != "" {
			t.Errorf("these are left:\n%s", left)
		}
	}
	w.kubectl("get", "-k", "../../config/crd")
}
