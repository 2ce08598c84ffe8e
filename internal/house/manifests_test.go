package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryOfHandlers checks that the manifests of all handlers set the variable from which
// the memory for their Configurations is derived.
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
		if !strings.Contains(string(text), "- {name: GOMEMLIMIT, value: ") {
			t.Errorf("%s: it does not set GOMEMLIMIT: add it, below limits.memory", manifest)
		}
	}
}
