package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// conditionsOf returns the conditions with their types set in order: Applied, Ready, and so on.
func conditionsOf(conditions ...metav1.Condition) []metav1.Condition {
	kinds := []string{v0.ConditionApplied, v0.ConditionReady, v0.ConditionAccepted, v0.ConditionDiscovering}
	for i := range conditions {
		conditions[i].Type = kinds[i]
	}
	return conditions
}

func TestPace(t *testing.T) {
	var (
		isApplied = trueCondition("", v0.ReasonApplied, "applied")
		isReady   = trueCondition("", v0.ReasonReady, "ready")
		failed    = falseCondition("", v0.ReasonApplyFailed, "rejected")
		otherwise = falseCondition("", v0.ReasonApplyFailed, "rejected otherwise")
		ready     = conditionsOf(isApplied, isReady)
		onTheWay  = conditionsOf(isApplied, falseCondition("", v0.ReasonProgressing, "Available: 0/2"))
		furtherOn = conditionsOf(isApplied, falseCondition("", v0.ReasonProgressing, "Available: 1/2"))
		held      = conditionsOf(
			falseCondition("", v0.ReasonRolloutWaiting, "later"), falseCondition("", v0.ReasonProgressing, "Available: 1/2"))
		noDevice   = conditionsOf(isApplied, falseCondition("", v0.ReasonNoInstances, ""))
		wrong      = conditionsOf(failed, failed)
		oneFails   = conditionsOf(isApplied, falseCondition("", v0.ReasonInstancesFailing, "1 of 9"))
		found      = conditionsOf(isApplied, falseCondition("", v0.ReasonProgressing, "0 of 1"), isApplied, isApplied)
		discovered = conditionsOf(isApplied, falseCondition("", v0.ReasonProgressing, "0 of 1"), isApplied,
			falseCondition("", v0.ReasonDiscoveryFailed, "no camera"))
	)
	recorded, another := []v0.ResourceStatus{{UID: "1", Hash: "old"}}, []v0.ResourceStatus{{UID: "2"}}
	again := []v0.ResourceStatus{{UID: "1", Hash: "new"}}
	edited := map[string]any{"observedGeneration": int64(2)}
	for name, tc := range map[string]struct {
		stored, now status
		want        pace
	}{
		"first report, on the way":  {status{}, status{Conditions: onTheWay}, settling},
		"first report, ready":       {status{}, status{Conditions: ready}, atOnce},
		"first report, wrong":       {status{}, status{Conditions: wrong}, atOnce},
		"first report, no device":   {status{}, status{Conditions: noDevice}, atOnce},
		"a number has changed":      {status{Conditions: ready}, status{Conditions: ready}, progress},
		"further on the way":        {status{Conditions: onTheWay}, status{Conditions: furtherOn}, progress},
		"ready":                     {status{Conditions: onTheWay}, status{Conditions: ready}, atOnce},
		"no longer ready":           {status{Conditions: ready}, status{Conditions: onTheWay}, settling},
		"wrong":                     {status{Conditions: onTheWay}, status{Conditions: wrong}, atOnce},
		"wrong in another way":      {status{Conditions: wrong}, status{Conditions: conditionsOf(otherwise, otherwise)}, atOnce},
		"wrong before":              {status{Conditions: wrong}, status{Conditions: onTheWay}, settling},
		"waits for its turn":        {status{Conditions: onTheWay}, status{Conditions: held}, atOnce},
		"first device":              {status{Conditions: noDevice}, status{Conditions: onTheWay}, settling},
		"one of several fails":      {status{Conditions: onTheWay}, status{Conditions: oneFails}, atOnce},
		"discovery fails meanwhile": {status{Conditions: found}, status{Conditions: discovered}, settling},
		"an object is applied again": {
			status{Conditions: onTheWay, Resources: recorded}, status{Conditions: onTheWay, Resources: again}, progress,
		},
		"an object is new": {
			status{Conditions: onTheWay, Resources: recorded}, status{Conditions: onTheWay, Resources: another}, settling,
		},
		"the templates are edited": {status{Conditions: onTheWay}, status{Conditions: onTheWay, Fields: edited}, settling},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pass{object: &v0.Instance{}, stored: tc.stored}
			if got := p.paceOf(tc.now); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// A status that waits is written in time, and later passes do not extend the delay.
func TestHeldStatus(t *testing.T) {
	began := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		written time.Duration // before the status was first computed; 0 for never
		pace    pace
		after   time.Duration // of the pass, since the status was first computed
		want    time.Duration
	}{
		"first, on its way":           {0, settling, 0, 500 * time.Millisecond},
		"further on its way":          {0, progress, 100 * time.Millisecond, 400 * time.Millisecond},
		"wrong":                       {0, atOnce, 100 * time.Millisecond, 0},
		"wrong, right after a write":  {250 * time.Millisecond, atOnce, 0, 750 * time.Millisecond},
		"further after a write":       {time.Second, progress, 0, 9 * time.Second},
		"further, long after a write": {10 * time.Second, progress, 0, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			var known record
			if tc.written > 0 {
				known.written = began.Add(-tc.written)
			}
			known.hold(status{}, tc.pace, began)
			if wait := known.hold(status{}, tc.pace, began.Add(tc.after)); wait != tc.want {
				t.Errorf("it waits for %v, want %v", wait, tc.want)
			}
		})
	}
}
