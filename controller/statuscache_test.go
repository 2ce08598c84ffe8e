package controller

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
)

// A status that was written takes precedence over the cache until the cache has it.
// The API server returns it with its times in whole seconds.
func TestStatusCache(t *testing.T) {
	const us types.UID = "cam"
	c := newStatusCache[v0.InstanceStatus]()
	old := v0.InstanceStatus{}
	written := v0.InstanceStatus{Conditions: instanceConditions(nil, converge.Outcome{})}
	stored := *written.DeepCopy()
	for i := range stored.Conditions {
		stored.Conditions[i].LastTransitionTime = stored.Conditions[i].LastTransitionTime.Rfc3339Copy()
	}
	if since := c.since(us); since != math.MaxInt64 {
		t.Errorf("a status was written %v ago, want never", since)
	}
	c.remember(us, written)
	if got := c.latest(us, old); len(got.Conditions) != len(written.Conditions) {
		t.Errorf("the latest status is %+v, want the one that was written", got)
	}
	c.latest(us, stored)
	if c.written[us].status != nil {
		t.Error("the status is kept although the cache has it")
	}
	if got := c.latest(us, old); len(got.Conditions) != 0 {
		t.Errorf("the latest status is %+v, want the cached one", got)
	}
	c.forget(us)
	if len(c.written) != 0 || c.since(us) != math.MaxInt64 {
		t.Error("the parent was not forgotten")
	}
}
