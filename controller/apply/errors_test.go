package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// What the API server says about a Secret may quote its values: errors name only the
// reason and the fields.
func TestErrorsAboutSecretsQuoteNothing(t *testing.T) {
	w := newWorld(t)
	const hidden = "hunter2"
	secret := func(change func(map[string]any)) *plan.Desired {
		content := w.content("secret", "")
		delete(content, "data")
		content["kind"] = "Secret"
		content["immutable"] = true
		content["stringData"] = map[string]any{"password": hidden}
		change(content)
		return &plan.Desired{
			Kind:     schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Content: content,
		}
	}
	created, err := w.Create(t.Context(), secret(func(map[string]any) {}), ownership.Claim{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	other := func(content map[string]any) { content["metadata"].(map[string]any)["name"] = "other" }
	errs := map[string]error{}
	_, errs["invalid key"] = w.Create(t.Context(), secret(func(content map[string]any) {
		other(content)
		content["stringData"] = map[string]any{"not a key": hidden}
	}), ownership.Claim{Parent: parent})
	_, errs["wrong type"] = w.Create(t.Context(), secret(func(content map[string]any) {
		other(content)
		content["stringData"] = map[string]any{"password": map[string]any{hidden: hidden}}
	}), ownership.Claim{Parent: parent})
	_, errs["immutable"] = w.Update(t.Context(), secret(func(content map[string]any) {
		content["stringData"] = map[string]any{"password": hidden + "3"}
	}), created.GetUID(), "")
	errs["trial"] = w.Try(t.Context(), secret(func(content map[string]any) { content["stringData"] = map[string]any{"not a key": hidden} }))
	for name, err := range errs {
		switch {
		case err == nil:
			t.Errorf("%s: accepted", name)
		case strings.Contains(err.Error(), hidden):
			t.Errorf("%s: %v", name, err)
		case name == "invalid key" && !strings.Contains(err.Error(), "data[not a key]"):
			t.Errorf("%s: the field is not named: %v", name, err)
		}
	}
	if _, err := w.Create(t.Context(), configMap(w.content("Not A Name", "1")),
		ownership.Claim{Parent: parent}); err == nil || !strings.Contains(err.Error(), "Not A Name") {
		t.Errorf("about other kinds, the message is repeated: %v", err)
	}
}
