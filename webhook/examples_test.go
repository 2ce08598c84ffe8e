package webhook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// The Configurations in Akri's documentation and in its examples are admitted
// unchanged and without a warning, for a user who may create their objects.
func TestDocumentedConfigurationsAreAdmitted(t *testing.T) {
	files, err := filepath.Glob("testdata/akri/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := filepath.Glob("../examples/*/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../examples/*/*/configuration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 8 || len(ours)+len(deeper) < 8 {
		t.Fatalf("found only %d and %d files", len(files), len(ours)+len(deeper))
	}
	newWorld(t).grantEverywhere("author", rule("", "secrets", "get")) // some are in a namespace of their own
	for _, file := range append(append(files, ours...), deeper...) {
		t.Run(strings.TrimPrefix(strings.TrimSuffix(file, "/configuration.yaml"), "../"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			w.options.CrossNamespaceProperties = true // this namespace is not theirs
			w.guard()
			w.grant("author", configurations,
				rule("", "pods", everyVerb...), rule("", "services", everyVerb...), rule("", "configmaps", everyVerb...),
				rule("apps", "deployments", everyVerb...), rule("apps", "daemonsets", everyVerb...), rule("batch", "jobs",
					everyVerb...), rule("networking.k8s.io", "networkpolicies", everyVerb...),
				rbacv1.PolicyRule{
					APIGroups: []string{"shifu.edgenesis.io", "kubevirt.io"}, Resources: []string{"*"}, Verbs: append(everyVerb, "get"),
				})
			author := w.as("author")
			if err := author.apply(string(text)); err != nil {
				t.Fatal(err)
			}
			for warning := range strings.SplitSeq(author.warnings.take(), "\n") {
				if warning != "" && !strings.Contains(warning, "the API server has no kind") {
					t.Errorf("warned: %s", warning)
				}
			}
		})
	}
}
