package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// A rollout that does not end says which Instance it waits for, and why that is not ready. Those
// that wait are not among them, whether they are ready or not.
func TestRolloutNamesWhatItWaitsFor(t *testing.T) {
	instance := func(name string, applied, ready metav1.Condition) v0.Instance {
		return v0.Instance{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v0.InstanceStatus{Conditions: conditionsOf(applied, ready)}}
	}
	held := falseCondition("", v0.ReasonRolloutWaiting, "later")
	var g group
	for _, each := range []v0.Instance{
		instance("cam-1", trueCondition("", v0.ReasonApplied, ""), falseCondition("", v0.ReasonProgressing, "Deployment cam-1: Available: 0/1")),
		instance("cam-2", held, trueCondition("", v0.ReasonReady, "")),
		instance("cam-3", held, falseCondition("", v0.ReasonRolloutWaiting, "1 object to be created")),
	} {
		g.add(each)
	}
	applied := g.appliedCondition(trueCondition("", v0.ReasonApplied, ""))
	const want = "2 of 3 Instances are waiting to be updated\ncam-2\ncam-3\nuntil these are ready (spec.rollout.maxUnavailable)\n" +
		"Instance cam-1: Deployment cam-1: Available: 0/1"
	if applied.Reason != v0.ReasonRolloutWaiting || applied.Message != want {
		t.Errorf("condition Applied is %s %q, want %q", applied.Reason, applied.Message, want)
	}
}
