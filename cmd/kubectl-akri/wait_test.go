package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"akri.sh/akri/internal/apitest"
)

// TestKubectlWait runs the commands of docs/operating.md that wait with kubectl, for a
// Configuration with the device that they wait for, and for one without.
func TestKubectlWait(t *testing.T) {
	page, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n### kubectl wait\n")
	if !found {
		t.Fatal("docs/operating.md has no section on kubectl wait")
	}
	section, _, _ = strings.Cut(section, "\n### ")
	w := newWorld(t)
	configuration := func(name string) string {
		return "apiVersion: akri.sh/v0\nkind: Configuration\nmetadata: {name: " + name + "}\nspec: {discoveryHandler: {name: debugEcho}}"
	}
	w.Apply(configuration("awaited")) // other tests, which share the API server, have cameras
	w.Apply(configuration("unmet"))
	for _, name := range []string{"awaited-1", "awaited-2", "awaited-3"} {
		w.Instance("awaited", name, nil)
	}
	defer w.startController()()
	kubectl := func(command string) error {
		command = strings.Replace(command, "kubectl", apitest.Kubectl(t)+" --kubeconfig="+w.kubeconfig, 1)
		output, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
		t.Logf("%s\n%s", command, output)
		return err
	}
	commands := 0
	for line := range strings.Lines(section) {
		command, isCommand := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "    kubectl wait ")
		if !isCommand {
			continue
		}
		commands++
		if err := kubectl("kubectl wait " + strings.Replace(command, "/cameras", "/awaited", 1)); err != nil {
			t.Errorf("kubectl wait %s: %v", command, err)
		}
		command, comment, _ := strings.Cut(strings.Replace(command, "/cameras", "/unmet", 1), "#")
		devicesOrNot := strings.Contains(comment, "devices or not")
		if !devicesOrNot {
			command += " --timeout=1s"
		}
		if err := kubectl("kubectl wait " + command); (err == nil) != devicesOrNot {
			t.Errorf("without devices: kubectl wait %s: %v", command, err)
		}
	}
	if commands != 3 {
		t.Errorf("%d commands were found", commands)
	}
}
