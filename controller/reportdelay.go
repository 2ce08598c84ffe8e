package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

// A status is written at once, but that of one object at most once in writeInterval. One that
// says that things are on their way waits: settleDelay if a verdict or an object is new, because
// most objects are ready soon after they were applied, and otherwise for progressInterval.
const (
	writeInterval    = time.Second
	settleDelay      = 500 * time.Millisecond
	progressInterval = 10 * time.Second
)

// urgency says how long a status may wait.
type urgency int

const (
	atOnce   urgency = iota
	settling         // something is new, and on its way
	progress         // nothing is new but how far things have come
)

// due returns when a status must be written that was first computed at since; the one
// before was written at written, which may be zero.
func (u urgency) due(since, written time.Time) time.Time {
	at := written.Add(writeInterval)
	switch u {
	case progress:
		at = written.Add(progressInterval)
		fallthrough
	case settling:
		if first := since.Add(settleDelay); first.After(at) {
			return first
		}
	}
	return at
}

// urgencyOf returns the urgency of a status: by its conditions, and by its inventory, which
// finds objects again that the next leader could not find otherwise.
func urgencyOf(stored, now []metav1.Condition, had, has []v0.ResourceStatus) urgency {
	onTheWay := meta.IsStatusConditionTrue(now, v0.ConditionApplied)
	if ready := meta.FindStatusCondition(now, v0.ConditionReady); ready == nil || ready.Reason != v0.ReasonProgressing {
		onTheWay = false
	}
	sameObjects := slices.EqualFunc(had, has, func(a, b v0.ResourceStatus) bool { return a.UID == b.UID })
	same := sameObjects
	for i := range now {
		after, before := &now[i], meta.FindStatusCondition(stored, now[i].Type)
		if before != nil && before.Status == after.Status && before.Reason == after.Reason {
			same = same && (before.Message == after.Message || after.Reason == v0.ReasonProgressing)
			continue
		}
		if same = false; after.Status == metav1.ConditionFalse && !expected(after.Reason) {
			return atOnce // something is wrong that was not before
		}
	}
	switch {
	case same:
		return progress
	case onTheWay:
		return settling
	}
	return atOnce
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
