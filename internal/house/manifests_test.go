package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryOfHandlers checks that the manifests of all handlers tell the Go runtime the limit of
// the container, whatever an operator makes it.
func TestMemoryOfHandlers(t *testing.T) {
	manifests, err := filepath.Glob("../../config/*/handler.yaml")
	if err != nil || len(manifests) < 8 {
		t.Fatalf("found %v, %v: want eight or more", manifests, err)
	}
	for _, manifest := range manifests {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "- name: GOMEMLIMIT\n          valueFrom: {resourceFieldRef: {resource: limits.memory}}\n") {
			t.Errorf("%s: GOMEMLIMIT is not limits.memory: add it as in ../default/agent.yaml", manifest)
		}
	}
}
