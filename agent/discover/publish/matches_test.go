package publish

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

func TestMatches(t *testing.T) {
	b := newBench(t)
	a, other := b.publisher("node-a"), b.publisher("node-b")
	name := b.publish(a, camera).Devices[0].Instance.Name
	b.publish(other, camera)
	b.eventually("both nodes know each other", func() bool {
		b.publish(a, camera)
		return len(a.instances.Get(b.of(name)).Spec.Nodes) == 2
	})
	for what, tc := range map[string]struct {
		change           func(*v0.Instance)
		author, follower bool
	}{
		"nothing":                 {func(*v0.Instance) {}, true, true},
		"a claim":                 {owners("node-a", "node-b"), true, true},
		"a claim by an id":        {owners("C:0:node-a"), true, true},
		"another node":            {nodes("node-a", "node-b", "node-c"), true, true},
		"the other node has left": {nodes("node-a"), true, false},
		"the author has left":     {nodes("node-b"), false, true},
		"a property":              {func(i *v0.Instance) { i.Spec.BrokerProperties["URL"] = "x" }, false, false},
		"whether it is shared":    {func(i *v0.Instance) { i.Spec.Shared = false }, false, false},
		"a lower capacity":        {func(i *v0.Instance) { i.Spec.Capacity = 1 }, false, false},
		"a slot listed as free":   {func(i *v0.Instance) { i.Spec.DeviceUsage = map[string]v0.SlotOwner{i.Name + "-1": ""} }, true, true},
		"the owner":               {func(i *v0.Instance) { i.OwnerReferences = nil }, false, true},
		"the author's label":      {func(i *v0.Instance) { delete(i.Labels, v0.NodeLabel("node-a")) }, false, true},
		"the deletion":            {func(i *v0.Instance) { i.DeletionTimestamp = &i.CreationTimestamp }, false, false},
	} {
		changed := b.get(name)
		if changed.Spec.DeviceUsage == nil {
			changed.Spec.DeviceUsage = map[string]v0.SlotOwner{}
		}
		tc.change(changed)
		if author, follower := a.Matches(changed), other.Matches(changed); author != tc.author || follower != tc.follower {
			t.Errorf("%s: as before for the author: %t, for the other node: %t; want %t, %t", what, author, follower, tc.author, tc.follower)
		}
	}

	stranger := b.get(name)
	stranger.Name = "door-other"
	if a.Matches(stranger) {
		t.Error("an Instance that the last pass did not know is as before")
	}
	if _, err := a.Withdraw(t.Context(), b.name(), true); err != nil {
		t.Fatal(err)
	}
	if a.Matches(b.get(name)) {
		t.Error("after the Configuration was withdrawn, an Instance is as before")
	}
}

// An event costs the same however many devices the Configuration has.
func BenchmarkMatches(b *testing.B) {
	configuration := door()
	p := &Publisher{node: "node-a", results: newResults()}
	key := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	made := instance()
	known := streams.Known{Device: camera, Online: true}
	p.results.set(key, map[types.NamespacedName]match{
		{Namespace: made.Namespace, Name: made.Name}: {configuration, known, published(configuration, made, known)},
	})
	for b.Loop() {
		if !p.Matches(made) {
			b.Fatal("it does not match")
		}
	}
}
