package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/templating"
)

// testMapper maps ConfigMaps and Nodes, and fails for the group down.
type testMapper struct{}

func (testMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	switch {
	case kind.Group == "down":
		return nil, errors.New("no answer")
	case kind.Group == "" && kind.Kind == "ConfigMap":
		return mapping(true), nil
	case kind.Group == "" && kind.Kind == "Node":
		version := schema.GroupVersion{Version: "v1"}
		return &meta.RESTMapping{
			Resource:         version.WithResource("nodes"),
			GroupVersionKind: version.WithKind("Node"),
			Scope:            meta.RESTScopeRoot,
		}, nil
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

func TestDesire(t *testing.T) {
	object := func(index int, apiVersion, kind, name string) templating.Object {
		return templating.Object{
			Content: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}},
			Origin:  templating.Origin{Level: templating.InstanceLevel, Index: index},
		}
	}
	desired, problems := Desire(testMapper{}, confine.Policy{}, cam, []templating.Object{
		object(0, "v1", "ConfigMap", "a"),
		object(1, "nowhere/v1", "Nothing", "a"),
		object(2, "v1", "Node", "a"),
		object(3, "down/v1", "Thing", "a"),
		object(4, "v1", "ConfigMap", "a"),
		object(5, "v1", "ConfigMap", "b"),
	}, templating.Origin.String)
	var names []string
	for _, want := range desired {
		names = append(names, want.Place+": "+want.Ref.String()+" as "+want.Resource.Resource)
	}
	const expect = "instanceBrokerResources[0]: ConfigMap ns/a as configmaps, instanceBrokerResources[5]: ConfigMap ns/b as configmaps"
	if got := strings.Join(names, ", "); got != expect {
		t.Errorf("got %s\nwant %s", got, expect)
	}
	wants := []struct {
		reason, message string
		retryable       bool
	}{
		{v0.ReasonKindUnavailable, `instanceBrokerResources[1]: the API server has no kind "Nothing" in "nowhere/v1"`, true},
		{v0.ReasonRefused, "instanceBrokerResources[2]: kind Node of v1 is cluster-scoped", false},
		{v0.ReasonApplyFailed, "instanceBrokerResources[3]: look up the resource of down/v1, Kind=Thing: no answer", true},
		{v0.ReasonConflict, "instanceBrokerResources[4]: ConfigMap ns/a is also rendered by instanceBrokerResources[0]", true},
	}
	if len(problems) != len(wants) {
		t.Fatalf("got %+v, want %d problems", problems, len(wants))
	}
	for i, want := range wants {
		if got := problems[i]; got.Reason != want.reason || got.Retryable != want.retryable || !strings.HasPrefix(got.Error(), want.message) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// A parent has at most MaxObjects: with one more, none is applied, and the author is
// told how many there are.
func TestDesireTooMany(t *testing.T) {
	objects := func(n int) []templating.Object {
		list := make([]templating.Object, n)
		for i := range list {
			list[i].Content = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint(i)}}
		}
		return list
	}
	if MaxRecorded > v0.MaxResources {
		t.Errorf("an inventory has up to %d entries, but the schema of the status allows %d", MaxRecorded, v0.MaxResources)
	}
	desired, problems := Desire(testMapper{}, confine.Policy{}, cam, objects(MaxObjects), templating.Origin.String)
	if len(desired) != MaxObjects || len(problems) != 0 {
		t.Errorf("%d objects, problems %v", len(desired), problems)
	}
	desired, problems = Desire(testMapper{}, confine.Policy{}, cam, objects(MaxObjects+1), templating.Origin.String)
	if len(desired) != 0 || len(problems) != 1 || problems[0].Reason != v0.ReasonRefused ||
		!strings.Contains(problems[0].Error(), "instanceBrokerResources: 1001 objects for one device exceed the limit of 1000") {
		t.Errorf("%d objects, problems %v", len(desired), problems)
	}
}
