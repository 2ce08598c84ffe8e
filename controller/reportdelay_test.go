package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func conditionsOf(verdicts ...verdict) []metav1.Condition {
	kinds := []string{v0.ConditionApplied, v0.ConditionReady, v0.ConditionAccepted, v0.ConditionDiscovering}
	var conditions []metav1.Condition
	for i, v := range verdicts {
		conditions = append(conditions, v.condition(kinds[i], 0))
	}
	return conditions
}

func TestUrgency(t *testing.T) {
	var (
		isApplied  = conditionTrue(v0.ReasonApplied, "applied")
		isReady    = conditionTrue(v0.ReasonReady, "ready")
		failed     = conditionFalse(v0.ReasonApplyFailed, "rejected")
		otherwise  = conditionFalse(v0.ReasonApplyFailed, "rejected otherwise")
		ready      = conditionsOf(isApplied, isReady)
		onTheWay   = conditionsOf(isApplied, conditionFalse(v0.ReasonProgressing, "Available: 0/2"))
		furtherOn  = conditionsOf(isApplied, conditionFalse(v0.ReasonProgressing, "Available: 1/2"))
		held       = conditionsOf(conditionFalse(v0.ReasonRolloutWaiting, "later"), conditionFalse(v0.ReasonProgressing, "Available: 1/2"))
		noDevice   = conditionsOf(isApplied, conditionFalse(v0.ReasonNoInstances, ""))
		wrong      = conditionsOf(failed, failed)
		oneFails   = conditionsOf(isApplied, conditionFalse(v0.ReasonInstancesFailing, "1 of 9"))
		found      = conditionsOf(isApplied, conditionFalse(v0.ReasonProgressing, "0 of 1"), isApplied, isApplied)
		discovered = conditionsOf(isApplied, conditionFalse(v0.ReasonProgressing, "0 of 1"), isApplied,
			conditionFalse(v0.ReasonDiscoveryFailed, "no camera"))
	)
	for name, tc := range map[string]struct {
		stored, now []metav1.Condition
		want        urgency
	}{
		"first report, on the way":  {nil, onTheWay, settling},
		"first report, ready":       {nil, ready, atOnce},
		"first report, wrong":       {nil, wrong, atOnce},
		"first report, no device":   {nil, noDevice, atOnce},
		"a number has changed":      {ready, ready, progress},
		"further on the way":        {onTheWay, furtherOn, progress},
		"ready":                     {onTheWay, ready, atOnce},
		"no longer ready":           {ready, onTheWay, settling},
		"wrong":                     {onTheWay, wrong, atOnce},
		"wrong in another way":      {wrong, conditionsOf(otherwise, otherwise), atOnce},
		"wrong before":              {wrong, onTheWay, settling},
		"waits for its turn":        {onTheWay, held, atOnce},
		"first device":              {noDevice, onTheWay, settling},
		"one of several fails":      {onTheWay, oneFails, atOnce},
		"discovery fails meanwhile": {found, discovered, atOnce},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urgencyOf(tc.stored, tc.now, nil, nil); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	recorded := []v0.ResourceStatus{{UID: "1", Hash: "old"}}
	if got := urgencyOf(onTheWay, onTheWay, recorded, []v0.ResourceStatus{{UID: "1", Hash: "new"}}); got != progress {
		t.Errorf("a known object is applied again: got %v", got)
	}
	if got := urgencyOf(onTheWay, onTheWay, recorded, []v0.ResourceStatus{{UID: "2"}}); got != settling {
		t.Errorf("an object is new: got %v", got)
	}
}
