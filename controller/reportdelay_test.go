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

func TestOnlyProgress(t *testing.T) {
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
		want        bool
	}{
		"first report, on the way":  {nil, onTheWay, true},
		"first report, ready":       {nil, ready, false},
		"first report, wrong":       {nil, wrong, false},
		"first report, no device":   {nil, noDevice, false},
		"a number has changed":      {ready, ready, true},
		"further on the way":        {onTheWay, furtherOn, true},
		"ready":                     {onTheWay, ready, false},
		"no longer ready":           {ready, onTheWay, true},
		"wrong":                     {onTheWay, wrong, false},
		"wrong in another way":      {wrong, conditionsOf(otherwise, otherwise), false},
		"wrong before":              {wrong, onTheWay, true},
		"waits for its turn":        {onTheWay, held, false},
		"first device":              {noDevice, onTheWay, true},
		"one of several fails":      {onTheWay, oneFails, false},
		"discovery fails meanwhile": {found, discovered, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := onlyProgress(tc.stored, tc.now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
