package controller_test

import (
	"os/exec"
	"strings"
	"testing"
)

// Packages that decide import no client: their tests need only tables of values.
func TestDecisionsReachNoCluster(t *testing.T) {
	packages := []string{"akri.sh/akri/api/v0"}
	for _, name := range []string{"advice", "confine", "inventory", "ownership", "plan", "problem", "rollout", "templates"} {
		packages = append(packages, "akri.sh/akri/controller/"+name)
	}
	output, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dependencies := strings.Fields(string(output))
	if len(dependencies) < 50 {
		t.Fatalf("only %d dependencies: go list does not work", len(dependencies))
	}
	for _, imported := range dependencies {
		for _, forbidden := range []string{
			"k8s.io/client-go", "sigs.k8s.io/controller-runtime",
			"akri.sh/akri/agent", "akri.sh/akri/controller/apply", "akri.sh/akri/controller/informers",
		} {
			if imported == forbidden || strings.HasPrefix(imported, forbidden+"/") {
				t.Errorf("one of %v imports %s", packages, imported)
			}
		}
	}
}
