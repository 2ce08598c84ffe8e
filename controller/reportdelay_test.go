package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating"
)

// parentOfReports is the parent of the tests' reports.
func parentOfReports(level templating.Level) ownership.Parent {
	return ownership.Parent{Level: level, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}, UID: "cam"}
}

// entry is an applied object of an inventory; its reason says why it is not ready.
func entry(uid, reason string) v0.ResourceStatus {
	return v0.ResourceStatus{
		Version: "v1", Kind: "Deployment", Namespace: "ns", Name: "d", UID: uid, Hash: "i", ManagedFieldsHash: "f",
		Ready: reason == "", Reason: reason,
	}
}

// inUse are the kinds that other inventories have.
var inUse = []schema.GroupVersionKind{{Version: "v1", Kind: "Deployment"}}

func conditionsOf(verdicts ...verdict) []metav1.Condition {
	kinds := []string{v0.ConditionApplied, v0.ConditionReady, v0.ConditionAccepted, v0.ConditionDiscovering}
	var conditions []metav1.Condition
	for i, v := range verdicts {
		conditions = append(conditions, v.condition(kinds[i], 0))
	}
	return conditions
}

var (
	isApplied   = conditionTrue(v0.ReasonApplied, "applied")
	isReady     = conditionTrue(v0.ReasonReady, "ready")
	onItsWay    = conditionFalse(v0.ReasonProgressing, "Available: 0/2")
	furtherOn   = conditionFalse(v0.ReasonProgressing, "Available: 1/2")
	failed      = conditionFalse(v0.ReasonApplyFailed, "rejected")
	failedAgain = conditionFalse(v0.ReasonApplyFailed, "rejected otherwise")
)

func TestInstanceUrgency(t *testing.T) {
	status := func(resources []v0.ResourceStatus, verdicts ...verdict) v0.InstanceStatus {
		return v0.InstanceStatus{Resources: resources, Conditions: conditionsOf(verdicts...)}
	}
	one := func(uid, reason string) []v0.ResourceStatus { return []v0.ResourceStatus{entry(uid, reason)} }
	changed := func(change func(*v0.ResourceStatus)) []v0.ResourceStatus {
		e := entry("1", "Available: 0/2")
		change(&e)
		return []v0.ResourceStatus{e}
	}
	progressing := status(one("1", "Available: 0/2"), isApplied, onItsWay)
	claimed, named := status(one("1", ""), isApplied, isReady), status(one("1", ""), isApplied, isReady)
	claimed.FreeSlots, named.DisplayName = new(int32(0)), "oven"
	for name, tc := range map[string]struct {
		stored, now v0.InstanceStatus
		want        urgency
	}{
		"first report, on the way": {v0.InstanceStatus{}, progressing, settling},
		"first report, ready":      {v0.InstanceStatus{}, status(one("1", ""), isApplied, isReady), atOnce},
		"first report, wrong":      {v0.InstanceStatus{}, status(one("", "x"), failed, failed), atOnce},
		"repaired": {progressing,
			status(changed(func(e *v0.ResourceStatus) { e.ManagedFieldsHash = "new" }), isApplied, onItsWay), repaired},
		"a slot was claimed":              {status(one("1", ""), isApplied, isReady), claimed, counting},
		"another name":                    {status(one("1", ""), isApplied, isReady), named, atOnce},
		"became ready":                    {progressing, status(one("1", ""), isApplied, isReady), atOnce},
		"further on its way":              {progressing, status(one("1", "Available: 1/2"), isApplied, furtherOn), counting},
		"its controller reports an error": {progressing, status(one("1", "quota exceeded"), isApplied, onItsWay), atOnce},
		"no longer ready": {status(one("1", ""), isApplied, isReady), status(one("1", "Available: 1/2"), isApplied, furtherOn),
			atOnce},
		"edited": {status(one("1", ""), isApplied, isReady),
			status(changed(func(e *v0.ResourceStatus) { e.Hash = "new" }), isApplied, onItsWay), settling},
		"created again": {status(one("0", ""), isApplied, isReady), progressing, settling},
		"edited, wrong": {progressing, status(changed(func(e *v0.ResourceStatus) { e.Hash = "new" }), failed, failed), atOnce},
		"wrong before":  {status(nil, failed, failed), progressing, settling},
		"waits for its turn": {progressing,
			status(one("1", "Available: 1/2"), conditionFalse(v0.ReasonRolloutWaiting, "later"), onItsWay), atOnce},
		"new object that has no owner": {v0.InstanceStatus{},
			status(changed(func(e *v0.ResourceStatus) { e.Orphan = true }), isApplied, onItsWay), atOnce},
		"new object of a kind that only this Instance has": {v0.InstanceStatus{},
			status(changed(func(e *v0.ResourceStatus) { e.Kind = "Job" }), isApplied, onItsWay), atOnce},
		"new object in another namespace": {v0.InstanceStatus{},
			status(changed(func(e *v0.ResourceStatus) { e.Namespace = "far" }), isApplied, onItsWay), atOnce},
		"recorded object in another namespace": {
			status(changed(func(e *v0.ResourceStatus) { e.Namespace = "far" }), isApplied, isReady),
			status(changed(func(e *v0.ResourceStatus) { e.Namespace, e.Hash = "far", "new" }), isApplied, onItsWay), settling},
	} {
		t.Run(name, func(t *testing.T) {
			if got := instanceUrgency(parentOfReports(templating.InstanceLevel), tc.stored, tc.now, inUse); got != tc.want {
				t.Errorf("urgency %d, want %d", got, tc.want)
			}
		})
	}
}

func TestGroupUrgency(t *testing.T) {
	status := func(change func(*v0.ConfigurationStatus), verdicts ...verdict) v0.ConfigurationStatus {
		status := v0.ConfigurationStatus{ObservedGeneration: 1, Instances: 9, Conditions: conditionsOf(verdicts...)}
		if change != nil {
			change(&status)
		}
		return status
	}
	progressing, ready := status(nil, isApplied, onItsWay), status(nil, isApplied, isReady)
	failing := conditionFalse(v0.ReasonInstancesFailing, "1 of 9")
	for name, tc := range map[string]struct {
		stored, now v0.ConfigurationStatus
		want        urgency
	}{
		"first report, no device":  {v0.ConfigurationStatus{}, status(nil, isApplied, conditionFalse(v0.ReasonNoInstances, "")), atOnce},
		"first report, on the way": {v0.ConfigurationStatus{}, progressing, settling},
		"new generation": {progressing, status(func(s *v0.ConfigurationStatus) { s.ObservedGeneration = 2 }, isApplied, onItsWay),
			settling},
		"new generation, invalid": {progressing, status(func(s *v0.ConfigurationStatus) { s.ObservedGeneration = 2 }, failed, failed),
			atOnce},
		"first device":      {status(nil, isApplied, conditionFalse(v0.ReasonNoInstances, "")), progressing, settling},
		"further device":    {ready, progressing, settling},
		"one more is ready": {progressing, status(func(s *v0.ConfigurationStatus) { s.ReadyInstances = 1 }, isApplied, furtherOn), counting},
		"all are ready":     {progressing, status(func(s *v0.ConfigurationStatus) { s.ReadyInstances = 9 }, isApplied, isReady), gathering},
		"one fails":         {progressing, status(func(s *v0.ConfigurationStatus) { s.FailingInstances = 1 }, failing, failing), atOnce},
		"one more fails": {status(nil, failing, failing),
			status(func(s *v0.ConfigurationStatus) { s.FailingInstances = 2 }, failing, failing), gathering},
		"another failure": {status(nil, failed, failed), status(nil, failedAgain, failedAgain), gathering},
		"discovery fails": {status(nil, isApplied, isReady, isApplied, isApplied),
			status(nil, isApplied, isReady, isApplied, conditionFalse(v0.ReasonDiscoveryFailed, "no camera")), atOnce},
		"object without owner": {ready, status(func(s *v0.ConfigurationStatus) {
			s.Resources = []v0.ResourceStatus{entry("1", "")}
			s.Resources[0].Orphan = true
		}, isApplied, isReady), atOnce},
		"object with owner, on the way": {ready, status(func(s *v0.ConfigurationStatus) {
			s.Resources = []v0.ResourceStatus{entry("1", "Available: 0/2")}
		}, isApplied, onItsWay), settling},
	} {
		t.Run(name, func(t *testing.T) {
			if got := groupUrgency(parentOfReports(templating.ConfigurationLevel), tc.stored, tc.now, inUse); got != tc.want {
				t.Errorf("urgency %d, want %d", got, tc.want)
			}
		})
	}
}
