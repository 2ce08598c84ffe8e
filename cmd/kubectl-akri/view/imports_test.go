package view

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports checks that nothing here can reach a cluster: a page is a function of
// its input.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dependencies := strings.Fields(string(out))
	if len(dependencies) < 50 {
		t.Fatalf("only %d dependencies: go list does not work", len(dependencies))
	}
	forbidden := []string{
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime",
		"akri.sh/akri/agent", "akri.sh/akri/controller/apply", "akri.sh/akri/controller/watch",
	}
	for _, name := range dependencies {
		for _, prefix := range forbidden {
			if name == prefix || strings.HasPrefix(name, prefix+"/") {
				t.Errorf("%s is among the dependencies of view and can reach a cluster: move the code that needs it to cmd/kubectl-akri", name)
			}
		}
	}
}
