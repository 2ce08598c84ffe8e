package main

import (
	"encoding/json"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v0 "akri.sh/akri/api/v0"
)

// TestAuthorOfOneNamespace runs the commands as somebody who has, in one namespace, edit and
// the installed roles for people: each says what it could not read, and tells the rest.
func TestAuthorOfOneNamespace(t *testing.T) {
	w := newWorld(t)
	var rules []rbacv1.PolicyRule
	for _, name := range []string{"akri-view", "akri-edit"} {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(installed(t, "people.yaml", name)), &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	if err := rbacv1.AddToScheme(w.Scheme()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"system:aggregate-to-view", "system:aggregate-to-edit"} { // edit, before it is aggregated
		var role rbacv1.ClusterRole
		if err := w.Get(t.Context(), w.Key(name), &role); err != nil {
			t.Fatal(err)
		}
		rules = append(rules, role.Rules...)
	}
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	author := w.as("author", string(text))
	var configuration v0.Configuration
	if err := yaml.Unmarshal([]byte(example), &configuration); err != nil {
		t.Fatal(err)
	}
	_ = configuration
	w.Apply(example)
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo"})
	for _, args := range [][]string{{"tree"}, {"tree", "-A"}, {"why", "cam"}, {"why", "cam-1"}, {"rbac", "cam"}, {"nodes"}, {"nodes", "-n", w.Namespace}, {"version"}, {"diff", "cam"},
		{"explain", "cm", "x"}, {"why"}, {"migrate", "check"}, {"why", "pod/x"}, {"nodes", "node-a"}} {
		got := author.run("", args...)
		t.Logf("%v: %d\n--- out\n%s\n--- err\n%s", args, got.code, got.out, got.err)
	}
	_ = slices.Sorted[string]
	_ = metav1.NamespaceAll
}
