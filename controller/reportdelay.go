package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// A status is written at once, but that of one object at most once in writeInterval. One
// that says nothing new, other than how far things have come, waits: settleDelay, because
// most objects are ready soon after they were applied, and then for the rest of
// progressInterval.
const (
	writeInterval    = time.Second
	settleDelay      = 500 * time.Millisecond
	progressInterval = 10 * time.Second
)

// due returns when a status must be written that was first computed at since; the one
// before was written at written, which may be zero.
func due(progress bool, since, written time.Time) time.Time {
	if !progress {
		return written.Add(writeInterval)
	}
	first, next := since.Add(settleDelay), written.Add(progressInterval)
	if first.After(next) {
		return first
	}
	return next
}

// onlyProgress reports whether conditions tell nobody anything new but how far things
// have come: everything is applied and on its way to ready, or no verdict has changed.
func onlyProgress(stored, now []metav1.Condition) bool {
	ready := meta.FindStatusCondition(now, v0.ConditionReady)
	if meta.IsStatusConditionTrue(now, v0.ConditionApplied) && ready != nil && ready.Reason == v0.ReasonProgressing && !worse(stored, now) {
		return true
	}
	for i := range now {
		after := &now[i]
		before := meta.FindStatusCondition(stored, after.Type)
		if before == nil || before.Status != after.Status || before.Reason != after.Reason ||
			before.Message != after.Message && after.Reason != v0.ReasonProgressing {
			return false
		}
	}
	return true
}

// worse reports whether something is wrong that was not before.
func worse(stored, now []metav1.Condition) bool {
	for i := range now {
		after := &now[i]
		before := meta.FindStatusCondition(stored, after.Type)
		if after.Status == metav1.ConditionFalse && !expected(after.Reason) && (before == nil || before.Reason != after.Reason) {
			return true
		}
	}
	return false
}

// expected reports whether a condition is False for a reason that needs nobody's
// attention.
func expected(reason string) bool {
	switch reason {
	case v0.ReasonProgressing, v0.ReasonNoInstances, v0.ReasonRolloutWaiting:
		return true
	}
	return false
}
