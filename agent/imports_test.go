package agent_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAgentImports checks that the agent links few Kubernetes types: it runs on small
// machines, and each type costs memory.
func TestAgentImports(t *testing.T) {
	for _, imported := range dependencies(t, "-tags=grpcnotrace", "akri.sh/akri/cmd/akri-agent") { // as it is shipped
		switch {
		case strings.HasPrefix(imported, "k8s.io/api/") && imported != "k8s.io/api/core/v1",
			strings.HasPrefix(imported, "k8s.io/client-go/kubernetes"),
			strings.HasPrefix(imported, "k8s.io/client-go/informers"),
			imported == "k8s.io/client-go/dynamic/dynamicinformer",
			strings.HasPrefix(imported, "sigs.k8s.io/controller-runtime"):
			t.Errorf("akri-agent imports %s: use the dynamic client and agent/informer", imported)
		case imported == "text/template", imported == "html/template":
			t.Errorf("akri-agent imports %s: its reflection makes the linker keep all methods of all types", imported)
		case strings.HasPrefix(imported, "akri.sh/akri/templating"), strings.HasPrefix(imported, "akri.sh/akri/controller"):
			t.Errorf("akri-agent imports %s: agents do not render templates", imported)
		case strings.HasPrefix(imported, "github.com/spf13/cobra"), strings.HasPrefix(imported, "github.com/eclipse/paho"),
			imported == "akri.sh/akri/discovery/mqtt", imported == "akri.sh/akri/discovery/mdns", imported == "akri.sh/akri/discovery/web":
			t.Errorf("akri-agent imports %s: no handler in discovery/embeddable needs it", imported)
		}
	}
}

// TestDiscoveryImports checks that handlers depend only on the protocol.
func TestDiscoveryImports(t *testing.T) {
	for _, imported := range dependencies(t, "akri.sh/akri/discovery/...", "akri.sh/akri/cmd/akri-discovery") {
		if strings.HasPrefix(imported, "akri.sh/akri/agent") || strings.HasPrefix(imported, "akri.sh/akri/api") ||
			strings.HasPrefix(imported, "k8s.io/") {
			t.Errorf("discovery imports %s: a handler depends only on the protocol", imported)
		}
	}
}

func dependencies(t *testing.T, arguments ...string) []string {
	t.Helper()
	output, err := exec.Command("go", append([]string{"list", "-deps"}, arguments...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return strings.Fields(string(output))
}
