package controller

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/readiness"
)

// How long a report waits for a later one, so that one write says both. Nothing that
// is wrong waits.
const (
	// settleDelay is for objects that were just applied and are on their way to ready.
	settleDelay = 500 * time.Millisecond
	// gatherDelay is the minimum interval between reports of changed Instances.
	gatherDelay = time.Second
	// countDelay is the minimum interval between reports that differ only in how far
	// objects or Instances have come.
	countDelay = 10 * time.Second
)

// urgency says how long a report may wait.
type urgency int

const (
	atOnce urgency = iota
	settling
	gathering
	counting
	repaired   // nothing has changed but the digests of repaired objects
	unanswered // nothing can be reported: the API server does not answer
)

// due returns when a report must be written that was first computed at since; the
// one before was written at written, which may be zero.
func (u urgency) due(since, written time.Time) time.Time {
	switch u {
	case settling:
		return since.Add(settleDelay)
	case gathering:
		return written.Add(gatherDelay)
	case counting:
		if written.IsZero() {
			written = since
		}
		return written.Add(countDelay)
	case repaired:
		return since.Add(countDelay)
	case unanswered:
		return since.Add(unavailableDelay + maxUnavailableRetry)
	}
	return since
}

// instanceUrgency returns the urgency of a report that differs from the stored status.
// inUse are the kinds of the objects of all the Configuration's Instances, as stored.
func instanceUrgency(parent ownership.Parent, stored, now v0.InstanceStatus, inUse []schema.GroupVersionKind) urgency {
	switch {
	case onlyCounted(stored, now):
		return counting
	case onlyRepaired(stored, now):
		return repaired // another leader would apply the objects once more
	case !progressing(now.Conditions):
		return atOnce
	case !sameObjects(stored.Resources, now.Resources):
		if recoverable(parent, stored.Resources, now.Resources, inUse) {
			return settling
		}
	case progressing(stored.Conditions) && sameProgress(stored.Resources, now.Resources):
		return counting
	}
	return atOnce
}

// groupUrgency returns the urgency of a report that differs from the stored status
// of a Configuration.
func groupUrgency(parent ownership.Parent, stored, now v0.ConfigurationStatus, inUse []schema.GroupVersionKind) urgency {
	changed, wrong := compareConditions(stored.Conditions, now.Conditions)
	objects := !sameObjects(stored.Resources, now.Resources)
	switch {
	case wrong:
		return atOnce
	case objects && !recoverable(parent, stored.Resources, now.Resources, inUse):
		return atOnce
	case objects || stored.ObservedGeneration != now.ObservedGeneration:
		if progressing(now.Conditions) {
			return settling
		}
		return atOnce
	case changed && progressing(now.Conditions):
		return settling
	case !changed && progressing(now.Conditions) && stored.FailingInstances == now.FailingInstances &&
		sameProgress(stored.Resources, now.Resources):
		return counting
	}
	return gathering
}

// compareConditions reports whether a condition differs, other than in how far
// objects have come, and whether something is wrong that was not before.
func compareConditions(stored, now []metav1.Condition) (changed, wrong bool) {
	for i := range now {
		after := &now[i]
		before := meta.FindStatusCondition(stored, after.Type)
		same := before != nil && before.Status == after.Status && before.Reason == after.Reason
		switch {
		case same && (before.Message == after.Message || after.Reason == v0.ReasonProgressing):
			continue
		case !same && after.Status == metav1.ConditionFalse && !expected(after.Reason):
			wrong = true
		}
		changed = true
	}
	return changed, wrong
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

// progressing reports whether everything is applied, and something is not ready yet.
func progressing(conditions []metav1.Condition) bool {
	ready := meta.FindStatusCondition(conditions, v0.ConditionReady)
	return meta.IsStatusConditionTrue(conditions, v0.ConditionApplied) && ready != nil && ready.Reason == v0.ReasonProgressing
}

// sameObjects reports whether two inventories hold the same objects, applied as the
// same.
func sameObjects(a, b []v0.ResourceStatus) bool {
	return slices.EqualFunc(a, b, func(a, b v0.ResourceStatus) bool {
		a.Ready, a.Reason, b.Ready, b.Reason = false, "", false, ""
		return a == b
	})
}

// onlyCounted reports whether two statuses differ in nothing but the number of free slots.
func onlyCounted(stored, now v0.InstanceStatus) bool {
	stored.FreeSlots = now.FreeSlots
	return equality.Semantic.DeepEqual(stored, now)
}

// onlyRepaired reports whether two statuses differ in nothing but the digests of
// managed fields, which a repair changes.
func onlyRepaired(stored, now v0.InstanceStatus) bool {
	same := slices.EqualFunc(stored.Resources, now.Resources, func(a, b v0.ResourceStatus) bool {
		a.ManagedFieldsHash, b.ManagedFieldsHash = "", ""
		return a == b
	})
	return same && slices.Equal(stored.Conditions, now.Conditions) && stored.DisplayName == now.DisplayName
}

// sameProgress reports whether two inventories of the same objects differ at most in
// how far objects have come.
func sameProgress(stored, now []v0.ResourceStatus) bool {
	return slices.EqualFunc(stored, now, func(a, b v0.ResourceStatus) bool {
		return a.Ready == b.Ready && (a.Reason == b.Reason || readiness.Counts(a.Reason) && readiness.Counts(b.Reason))
	})
}

// recoverable reports whether all objects that only the new inventory has are found
// again without it: their owner references name the parent, and other inventories have
// objects of their kinds, so that these are watched whatever the templates become.
func recoverable(parent ownership.Parent, stored, now []v0.ResourceStatus, inUse []schema.GroupVersionKind) bool {
	known := make(map[string]bool, len(stored))
	for i := range stored {
		known[stored[i].UID] = true
	}
	return !slices.ContainsFunc(now, func(entry v0.ResourceStatus) bool {
		return !known[entry.UID] &&
			(entry.Orphan || !parent.Collected(entry.Namespace) || !slices.Contains(inUse, inventory.KindOf(entry)))
	})
}
