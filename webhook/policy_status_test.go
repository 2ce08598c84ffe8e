package webhook

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
)

// guardStatus installs the policy for status and waits until it is enforced. It creates
// the Instance seen.
func (w *world) guardStatus() {
	w.Helper()
	w.as("").make(v0.InstanceResource, seen)
	tries := 0
	w.enforce("policy/status.yaml", func() error {
		tries++ // an unchanged status is no change
		_, err := w.instances(w.as("").api).Patch(w.Context(), "cam-3", types.MergePatchType,
			fmt.Appendf(nil, `{"status":{"resources":[{"version":"v1","kind":"Pod","name":"probe","template":%d}]}}`, tries),
			metav1.PatchOptions{}, "status")
		return err
	})
}

// What is recorded in a status is deleted when it is no longer rendered. Permissions
// on the status, even an administrator's, do not suffice to write it.
func TestOnlyTheControllerWritesStatus(t *testing.T) {
	w := newWorld(t)
	if err := w.as("").apply(configuration("", "")); err != nil {
		t.Fatal(err)
	}
	w.guardStatus()
	write := func(user string, resource schema.GroupVersionResource, name, status string) error {
		api := w.agent("a")
		if user != agentAccount {
			api = w.as(user, "system:masters").api
		}
		_, err := api.Resource(resource).Namespace(w.Namespace).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"status":`+status+`}`), metav1.PatchOptions{}, "status")
		return err
	}
	instances, configurations := v0.InstanceResource, v0.ConfigurationResource

	const refused = "may not write it"
	const loot = `{"resources":[{"version":"v1","kind":"Secret","name":"loot","uid":"u","template":0}]}`
	expect(t, write(controllerAccount, instances, "cam-3", loot), "")
	expect(t, write(controllerAccount, configurations, "cam", loot), "")
	expect(t, write("admin", instances, "cam-3", loot), "") // nothing changes
	expect(t, write("admin", instances, "cam-3", `{"resources":null}`), refused)
	expect(t, write("admin", configurations, "cam", `{"resources":null}`), refused)
	expect(t, write("admin", configurations, "cam", `{"discoveryFailures":[{"node":"a","handler":"h","message":"m"}]}`), refused)
	expect(t, write(agentAccount, configurations, "cam", `{"discoveryFailures":[{"node":"a","handler":"h","message":"m"}]}`), "")
	expect(t, write(agentAccount, instances, "cam-3", `{"resources":null}`), refused)
	// The main resource ignores the status.
	expect(t, w.patched(w.as("").api, "cam-3", `{"metadata":{"labels":{"x":"1"}},"status":{"resources":null}}`), "")
}
