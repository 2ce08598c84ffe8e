package main

import (
	"encoding/json"
	"testing"

	"akri.sh/akri/cmd/kubectl-akri/view"
)

func TestCheck(t *testing.T) {
	w := newWorld(t)
	w.run("", "check").want(t, 1, "ok    kinds: Kubernetes v1.", " serves Configurations and Instances\n", "skip  webhook: not part of this installation\n",
		"FAIL  controller:\n  Akri's controller is not installed", "    → install it again", "FAIL  agents:", "skip  kubelets: ",
		"ok    permissions: ", "error: 2 of 8 checks failed")
	w.installed()
	w.run("", "check").want(t, 0, "ok    controller: ready\n", "ok    agents: ready on 1 node\n", "!FAIL", "!error:")
	w.Apply(example)
	w.Instance("cam", "cam-1", nil)
	got := w.run("", "check", "-o", "json")
	var checks view.Checks
	if err := json.Unmarshal([]byte(got.out), &checks); err != nil || got.code != 1 || checks.Failed() != 1 || len(checks[4].Problems) != 1 ||
		checks[4].Name != "kubelets" || checks[4].Problems[0].Hint == "" || !checks[1].Skipped {
		t.Errorf("%v, got %s", err, got.out)
	}

	reader := w.as("reader", `[{apiGroups: [akri.sh], resources: [configurations, instances], verbs: [get, list]}]`)
	reader.run("", "check").want(t, 1, "skip  webhook: you may not create Configurations in namespace ", "(the ClusterRole akri-edit permits it)",
		"skip  controller: there is none that you may list", "FAIL  permissions:\n  no permission to list Deployments, so a cause can be missing",
		"!note:")
}
