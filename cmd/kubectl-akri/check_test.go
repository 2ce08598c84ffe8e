package main

import (
	"encoding/json"
	"testing"

	"akri.sh/akri/cmd/kubectl-akri/view"
)

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.run("", "check").want(t, 1, "ok    cluster: Kubernetes v1.", " serves Akri's kinds\n", "ok    webhook: not part of this installation\n",
		"FAIL  controller:\n  Akri's controller is not installed", "    → install it again", "FAIL  agents:", "ok    permissions: ", "!error:")
	w.installed()
	w.run("", "check").want(t, 0, "ok    controller: no problem\n", "ok    agents: ready on 1 node; 0 nodes without one\n", "!FAIL")
	w.Apply(example)
	w.Instance("cam", "cam-1", nil)
	got := w.run("", "check", "-o", "json")
	var checks view.Checks
	if err := json.Unmarshal([]byte(got.out), &checks); err != nil || got.code != 1 || len(checks) != 8 || len(checks[3].Problems) > 0 ||
		checks[4].Name != "kubelets" || len(checks[4].Problems) != 1 || checks[4].Problems[0].Hint == "" {
		t.Errorf("%v, got %s", err, got.out)
	}

	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	reader.run("", "check").want(t, 1, "ok    webhook: not tried, because you may not create Configurations in namespace ",
		"ok    kubelets: not checked, because you may not list Nodes\n", "FAIL  permissions:\n  no permission to list Deployments, ",
		"!note:")
}
