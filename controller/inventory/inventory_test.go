package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v0 "akri.sh/akri/api/v0"
)

func entry(template int32, kind, name string) v0.ResourceStatus {
	return v0.ResourceStatus{Group: "apps", Version: "v1", Kind: kind, Namespace: "ns", Name: name, Template: template}
}

// Equal inventories are equal lists, in whatever order objects were applied.
func TestSort(t *testing.T) {
	sorted := []v0.ResourceStatus{
		entry(0, "DaemonSet", "b"),
		entry(0, "Deployment", "a"),
		entry(0, "Deployment", "b"),
		entry(1, "DaemonSet", "a"),
	}
	shuffled := []v0.ResourceStatus{sorted[3], sorted[2], sorted[0], sorted[1]}
	Sort(shuffled)
	if diff := cmp.Diff(sorted, shuffled); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The version is not part of an object's identity.
func TestIndex(t *testing.T) {
	old := entry(0, "Deployment", "a")
	old.Version = "v1beta1"
	index := Index([]v0.ResourceStatus{old})
	if found, ok := index[RefOf(entry(3, "Deployment", "a"))]; !ok || found.Version != "v1beta1" {
		t.Errorf("index %v", index)
	}
	kinds := Kinds([]v0.ResourceStatus{old, entry(0, "Deployment", "b"), entry(0, "Deployment", "c")})
	if len(kinds) != 2 || kinds[0].Version != "v1beta1" {
		t.Errorf("kinds %v", kinds)
	}
	if text := RefOf(old).String(); text != "Deployment.apps ns/a" {
		t.Errorf("the Ref's text is %q", text)
	}
}
