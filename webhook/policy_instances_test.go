package webhook

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// guardInstances installs the policy for Instances and waits until it is enforced.
func (w *world) guardInstances() {
	w.Helper()
	probe := decode(w, strings.ReplaceAll(seen, "cam-3", "cam-probe"))
	nobody := w.actingAs("system:serviceaccount:" + w.Namespace + ":nobody")
	w.grant(nobody.Impersonate.UserName, rule(v0.Domain, "instances", "create"))
	w.enforce("policy/instances.yaml", func() error {
		_, err := w.instances(w.as(nobody.Impersonate.UserName).api).
			Create(w.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
}

// A user with every usual permission on Instances cannot have templates rendered with
// properties of their choice.
func TestOnlyAgentsAndPublishersWriteInstances(t *testing.T) {
	w := newWorld(t)
	usual := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	w.grant("tenant", rule(v0.Domain, "instances", usual...))
	w.grant("tool", rule(v0.Domain, "instances", append(usual, "publish")...))
	one := rule(v0.Domain, "instances", "publish")
	one.ResourceNames = []string{"cam-1"}
	w.grant("narrow", rule(v0.Domain, "instances", "create", "patch"), one)
	w.grant(controllerAccount, rule(v0.Domain, "instances", usual...))
	w.guardInstances()
	w.as("").make(v0.InstanceResource, seen)

	create := func(user, name string) error {
		_, err := w.instances(w.as(user).api).Create(t.Context(), decode(t, strings.ReplaceAll(seen, "cam-3", name)),
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const refused = "may not publish Instances"
	expect(t, create("tenant", "cam-1"), refused)
	expect(t, create("tool", "cam-1"), "")
	expect(t, create("narrow", "cam-1"), "")
	expect(t, create("narrow", "cam-2"), refused)
	expect(t, create(controllerAccount, "cam-1"), refused)
	expect(t, create("", "cam-1"), "") // an administrator
	if _, err := w.instances(w.agent("")).Create(t.Context(), decode(t, strings.ReplaceAll(seen, "cam-3", "cam-1")),
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("an agent may not publish: %v", err)
	}

	const owners = `{"apiVersion":"akri.sh/v0","kind":"Configuration","name":"cam","uid":"u-1","controller":true,` +
		`"blockOwnerDeletion":false},{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u-2"}`
	for name, tc := range map[string]struct{ patch, refused string }{
		"properties":             {`{"spec":{"brokerProperties":{"IMAGE":"evil"}}}`, refused},
		"capacity":               {`{"spec":{"capacity":9}}`, refused},
		"nodes":                  {`{"spec":{"nodes":["b","c","mine"]}}`, refused},
		"a slot":                 {`{"spec":{"deviceUsage":{"cam-3-2":"mine"}}}`, refused},
		"another owner":          {`{"metadata":{"ownerReferences":[` + owners + `]}}`, refused},
		"a label":                {`{"metadata":{"labels":{"mine":"1"}}}`, ""},
		"no owner, as an orphan": {`{"metadata":{"ownerReferences":[]}}`, ""},
		"a finalizer":            {`{"metadata":{"finalizers":["example.com/x"]}}`, ""},
		"nothing":                {`{}`, ""},
		"what it says already":   {`{"spec":{"brokerProperties":{"K":"v"}}}`, ""},
		"properties and a label": {`{"metadata":{"labels":{"a":"b"}},"spec":{"brokerProperties":{"K":"w"}}}`, refused},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, w.patched(w.as("tenant").api, "cam-3", tc.patch), tc.refused)
			expect(t, w.patched(w.as("tool").api, "cam-3", tc.patch), "")
		})
	}
	err := w.instances(w.as("tenant").api).Delete(t.Context(), "cam-3", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Errorf("RBAC alone must decide about deletions: %v", err)
	}
}

// The controller removes lost nodes from Instances and sets its finalizer.
func TestTheControllerFreesSlots(t *testing.T) {
	w := newWorld(t)
	w.grant(controllerAccount, rule(v0.Domain, "instances", "patch", "get"))
	w.guardInstances()
	w.as("").make(v0.InstanceResource, seen)
	controller := w.as(controllerAccount).api
	lost := fmt.Sprintf(`[{"op":"test","path":"/spec/nodes/0","value":"b"},{"op":"remove","path":"/spec/nodes/0"},`+
		`{"op":"remove","path":"/metadata/labels/%s"},{"op":"test","path":"/spec/deviceUsage/cam-3-0","value":"b"},`+
		`{"op":"replace","path":"/spec/deviceUsage/cam-3-0","value":""}]`, strings.ReplaceAll(v0.NodeLabel("b"), "/", "~1"))
	_, err := w.instances(controller).Patch(t.Context(), "cam-3", types.JSONPatchType, []byte(lost),
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	expect(t, err, "")
	for name, tc := range map[string]struct{ patch, refused string }{
		"a finalizer":        {`{"metadata":{"finalizers":["akri.sh/cleanup"]}}`, ""},
		"a new order":        {`{"spec":{"nodes":["c","b"]}}`, ""},
		"another node":       {`{"spec":{"nodes":["b","c","d"]}}`, "may not publish"},
		"a slot for a node":  {`{"spec":{"deviceUsage":{"cam-3-2":"b"}}}`, "may not publish"},
		"a slot freed":       {`{"spec":{"deviceUsage":{"cam-3-3":""}}}`, ""},
		"other properties":   {`{"spec":{"brokerProperties":{"K":"w"}}}`, "may not publish"},
		"no properties":      {`{"spec":{"brokerProperties":null}}`, "may not publish"},
		"another capacity":   {`{"spec":{"capacity":9}}`, "may not publish"},
		"a local device now": {`{"spec":{"shared":false}}`, "may not publish"},
	} {
		t.Run(name, func(t *testing.T) { expect(t, w.patched(controller, "cam-3", tc.patch), tc.refused) })
	}
}
