package apply

import (
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// A list entry that a client replaces between the two requests of a repair is repaired
// by the next one, and its replacement does not stay.
func TestReplacedDuringRepair(t *testing.T) {
	w := newWorld(t)
	want := &plan.Desired{
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Service"},
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"},
		Content:  w.content("s", ""),
	}
	delete(want.Content, "data")
	want.Content["kind"] = "Service"
	want.Content["spec"] = map[string]any{"ports": []any{
		map[string]any{"name": "a", "port": int64(80), "protocol": "TCP"}, map[string]any{"name": "b", "port": int64(90), "protocol": "TCP"},
	}}
	claim := ownership.Claim{Parent: parent}
	created, err := w.Create(t.Context(), want, claim)
	if err != nil {
		t.Fatal(err)
	}
	services := w.dynamic.Resource(want.Resource).Namespace(w.namespace)
	replace := func(index, port string) {
		t.Helper()
		patch := `[{"op": "replace", "path": "/spec/ports/` + index + `", "value": {"name": "p` + port + `", "port": ` + port + `}}]`
		options := metav1.PatchOptions{FieldManager: "kubectl-patch"}
		if _, err := services.Patch(t.Context(), "s", types.JSONPatchType, []byte(patch), options); err != nil {
			t.Error(err)
		}
	}
	replace("0", "81")
	step := plan.Step{Action: plan.Update, Desired: want, UID: uidOf(t, created), Claim: claim, TakeOver: true}
	step.Ref.Kind, step.Ref.Namespace, step.Ref.Name = "Service", w.namespace, "s"

	isApply := func(r *http.Request) bool { return r.Header.Get("Content-Type") == string(types.ApplyPatchType) }
	api := w.interrupted(isApply, func() { replace("1", "91") })
	if _, _, err := api.Do(t.Context(), step); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want %v", err, ErrChanged)
	}
	if _, _, err := w.Do(t.Context(), step); err != nil {
		t.Fatal(err)
	}
	live, err := services.Get(t.Context(), "s", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := portsOf(live); len(got) != 2 || got[0] != 80 || got[1] != 90 {
		t.Errorf("the ports are %v, want 80 and 90", got)
	}
}

func portsOf(service *unstructured.Unstructured) []int64 {
	var ports []int64
	list, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, port := range list {
		ports = append(ports, port.(map[string]any)["port"].(int64))
	}
	return ports
}
