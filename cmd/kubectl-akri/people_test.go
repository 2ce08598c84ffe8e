package main

import (
	"encoding/json"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestAuthorOfOneNamespace runs the commands as somebody who has edit and the installed roles
// for authors in one namespace: what they cannot read does not hide what they can.
func TestAuthorOfOneNamespace(t *testing.T) {
	w := newWorld(t)
	if err := rbacv1.AddToScheme(w.Scheme()); err != nil {
		t.Fatal(err)
	}
	var roles [4]rbacv1.ClusterRole
	for i, name := range []string{"system:aggregate-to-view", "system:aggregate-to-edit"} { // edit, before it is aggregated
		if err := w.Get(t.Context(), client.ObjectKey{Name: name}, &roles[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"akri-view", "akri-edit"} {
		if err := yaml.Unmarshal([]byte(installed(t, "people.yaml", name)), &roles[i+2]); err != nil {
			t.Fatal(err)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, role := range roles {
		rules = append(rules, role.Rules...)
	}
	text, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	author := w.as("author", string(text))
	w.Apply(example)
	w.Instance("cam", "cam-1", map[string]string{"TEXT": "foo"})
	const noPods = "note: no permission to list Pods in other namespaces"
	author.run("", "tree").want(t, 0, "Configuration "+w.Namespace+"/cam", "cam-1")
	author.run("", "why", "cam").want(t, 0, "Configuration "+w.Namespace+"/cam", noPods)
	author.run("", "why", "cam-1").want(t, 0, "Instance "+w.Namespace+"/cam-1", noPods)
	author.run("", "diff", "cam").want(t, 1, "cam-1-svc")
	author.run("", "rbac", "cam").want(t, 0, "- secrets", "note: these are all the roles that are needed")
	author.run("", "version").want(t, 0, "kubectl-akri", "note: no permission to list Pods, so a cause may be missing (the ClusterRole")
	author.run("", "nodes").want(t, 0, "NODE", "note: no permission to list Pods, ",
		"note: no permission to list Instances in other namespaces, ")

	w.grant("doctor", installed(t, "people.yaml", "akri-diagnose"))
	doctor := func(args ...string) commandResult {
		return w.run("", append(args, "--as=system:serviceaccount:"+w.Namespace+":doctor")...)
	}
	w.Eventually("akri-diagnose lets the cluster be asked", func() string { return doctor("rbac", "cam").err })
	doctor("why", "cam").want(t, 0, "Configuration "+w.Namespace+"/cam", "!note: no permission")
	doctor("tree", "-A").want(t, 0, "Configuration "+w.Namespace+"/cam")
	doctor("nodes").want(t, 0, "NODE", "!note: no permission", "note: Akri's controller is not installed")
}
