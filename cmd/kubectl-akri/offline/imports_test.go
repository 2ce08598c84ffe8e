package offline_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestImports checks that no dependency can reach a cluster: these commands work
// without one.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".", "../schema").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	forbidden := []string{
		"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apiserver/pkg/server", "google.golang.org/grpc",
		"akri.sh/akri/agent", "akri.sh/akri/discovery/protocol", "akri.sh/akri/discovery/monitor",
	}
	for name := range strings.FieldsSeq(string(out)) {
		for _, prefix := range forbidden {
			if name == prefix || strings.HasPrefix(name, prefix+"/") {
				t.Errorf("%s is among the dependencies and reaches a cluster or agents: move the code that needs it to cmd/kubectl-akri", name)
			}
		}
	}
}
