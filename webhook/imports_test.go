package webhook

import (
	"os/exec"
	"strings"
	"testing"
)

// The webhook uses the controller's packages for decisions, but runs neither its
// reconcilers nor an agent.
func TestImports(t *testing.T) {
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dependency := range strings.Lines(string(list)) {
		switch dependency = strings.TrimSpace(dependency); dependency {
		case "akri.sh/akri/controller", "akri.sh/akri/agent", "akri.sh/akri/discovery", "google.golang.org/grpc":
			t.Errorf("the webhook imports %s", dependency)
		}
	}
}
