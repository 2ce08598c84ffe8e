package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

func rendered(text string, policy templating.DeletionPolicy) templating.Object {
	return templating.Object{
		Content: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "door-cam"},
			"data":     map[string]any{"text": text},
		},
		Directives: templating.Directives{DeletionPolicy: policy, OnImmutable: templating.ImmutableRecreate},
		Origin:     templating.Origin{Index: 3},
	}
}

func mapping(namespaced bool) *meta.RESTMapping {
	scope := meta.RESTScopeRoot
	if namespaced {
		scope = meta.RESTScopeNamespace
	}
	version := schema.GroupVersion{Version: "v1"}
	return &meta.RESTMapping{Resource: version.WithResource("configmaps"), GroupVersionKind: version.WithKind("ConfigMap"), Scope: scope}
}

func TestNewDesired(t *testing.T) {
	want := func(text string, policy templating.DeletionPolicy) Desired {
		t.Helper()
		desired, err := newDesired(cam, rendered(text, policy), mapping(true))
		if err != nil {
			t.Fatal(err)
		}
		return desired
	}
	first, same, other := want("a", templating.DeletionDelete), want("a", templating.DeletionDelete), want("b", templating.DeletionDelete)
	if first.Hash != same.Hash || first.Hash == other.Hash {
		t.Errorf("the digests of equal objects are %s and %s, of another %s", first.Hash, same.Hash, other.Hash)
	}
	if first.Ref.String() != "ConfigMap ns/door-cam" || first.Kind.Version != "v1" || first.Resource.Resource != "configmaps" ||
		first.Template != 3 ||
		!first.Recreates() {
		t.Errorf("got %+v", first)
	}
	owners := (&unstructured.Unstructured{Object: first.Content}).GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != us || owners[0].Kind != "Instance" || owners[0].Controller == nil || !*owners[0].Controller {
		t.Errorf("its owners are %+v, want the Instance as controller", owners)
	}
	orphan := want("a", templating.DeletionOrphan)
	content := &unstructured.Unstructured{Object: orphan.Content}
	if owners := content.GetOwnerReferences(); len(owners) > 0 || !orphan.Orphans() {
		t.Errorf("the object to be orphaned is owned by %+v: garbage collection would remove it", owners)
	}
	if content.GetLabels()[v0.LabelDeletionPolicy] != v0.DeletionPolicyOrphan {
		t.Errorf("its labels are %v: it looks like a stray", content.GetLabels())
	}
}

// Garbage collection does not cross namespaces: labels identify the owner of such an
// object.
func TestNewDesiredElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		namespace  string
		namespaced bool
		policy     templating.DeletionPolicy
		ref, owner string
	}{
		"another namespace":             {"far", true, templating.DeletionDelete, "ConfigMap far/door-cam", string(us)},
		"no namespace":                  {"", false, templating.DeletionDelete, "ConfigMap door-cam", string(us)},
		"no namespace, to be orphaned":  {"", false, templating.DeletionOrphan, "ConfigMap door-cam", ""},
		"its own namespace, by name":    {"ns", true, templating.DeletionDelete, "ConfigMap ns/door-cam", ""},
		"its own namespace, by default": {"", true, templating.DeletionDelete, "ConfigMap ns/door-cam", ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := rendered("a", test.policy)
			if test.namespace != "" {
				object.Content["metadata"].(map[string]any)["namespace"] = test.namespace
			}
			desired, err := newDesired(cam, object, mapping(test.namespaced))
			if err != nil {
				t.Fatal(err)
			}
			if desired.Ref.String() != test.ref {
				t.Errorf("it is %s, want %s", desired.Ref, test.ref)
			}
			content := &unstructured.Unstructured{Object: desired.Content}
			labels, home := content.GetLabels(), test.ref == "ConfigMap ns/door-cam"
			if labels[v0.LabelOwner] != test.owner || (labels[v0.LabelNamespace] == "ns") == home {
				t.Errorf("its labels are %v", labels)
			}
			if owned := len(content.GetOwnerReferences()) > 0; owned != home {
				t.Errorf("owner references: %v", content.GetOwnerReferences())
			}
		})
	}
}

// An object that is applied once is applied again if its author changes it, not if
// a new version of the controller adds other labels.
func TestIntentOfObjectsAppliedOnce(t *testing.T) {
	intent := func(parent ownership.Parent, text, label string) string {
		object := rendered(text, templating.DeletionDelete)
		object.Directives.Once = true
		object.Content["metadata"].(map[string]any)["labels"] = map[string]any{v0.Domain + "/" + label: "x", "app": "a"}
		object.Content["spec"] = map[string]any{"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{v0.Domain + "/" + label: "x"}},
		}}
		desired, err := newDesired(parent, object, mapping(true))
		if err != nil {
			t.Fatal(err)
		}
		return desired.Hash
	}
	before := intent(cam, "a", "configuration")
	if after := intent(cam, "a", "another"); after != before {
		t.Error("another label of the controller's changes the digest")
	}
	if after := intent(cam, "b", "configuration"); after == before {
		t.Error("another text does not change the digest")
	}
}

// An object of a kind that is cluster-scoped now has no namespace, whatever its
// template says.
func TestScopeFollowsTheKind(t *testing.T) {
	object := rendered("a", templating.DeletionDelete)
	object.Content["metadata"].(map[string]any)["namespace"] = "ns"
	desired, err := newDesired(cam, object, mapping(false))
	if err != nil {
		t.Fatal(err)
	}
	content := &unstructured.Unstructured{Object: desired.Content}
	if desired.Ref.Namespace != "" || content.GetNamespace() != "" || len(content.GetOwnerReferences()) > 0 {
		t.Errorf("got %+v", desired)
	}
}
