package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/ownership"
)

// pace says when a status is written: not before some time after it was first computed, and
// not before some time after the last write.
type pace struct{ computed, written time.Duration }

var (
	atOnce = pace{0, time.Second}
	// settling is for a verdict or an object that is new and on its way: most objects are
	// ready soon after they were applied.
	settling = pace{500 * time.Millisecond, time.Second}
	// progress is for a status that says nothing new but how far things have come.
	progress = pace{500 * time.Millisecond, 10 * time.Second}
)

// paceOf returns the pace of a status: by its conditions, and by its inventory, which
// finds objects again that the next leader could not find otherwise.
func (p *pass) paceOf(now status) pace {
	same := p.object.GetDeletionTimestamp() == nil && p.stored.Fields["observedGeneration"] == now.Fields["observedGeneration"] &&
		slices.EqualFunc(p.stored.Resources, now.Resources, func(a, b v0.ResourceStatus) bool { return a.UID == b.UID })
	for _, after := range now.Conditions {
		before := meta.FindStatusCondition(p.stored.Conditions, after.Type)
		same = same && before != nil && before.Status == after.Status && before.Reason == after.Reason &&
			(before.Message == after.Message || after.Reason == v0.ReasonProgressing)
	}
	ready := meta.FindStatusCondition(now.Conditions, v0.ConditionReady)
	switch {
	case same:
		return progress
	case meta.IsStatusConditionTrue(now.Conditions, v0.ConditionApplied) && ready != nil && ready.Reason == v0.ReasonProgressing:
		return settling
	}
	return atOnce
}

// report writes the status of a parent if it has changed, and takes the finalizer off when
// no object needs it any more. It requeues the parent if a problem may heal, or if the status
// waits: it is then kept in memory, and another leader would compute it again.
func (r *parentReconciler) report(ctx context.Context, kind parentKind, p *pass, outcome *converge.Outcome) error {
	wait, problems := r.retry(p, outcome.Problems, time.Now())
	outcome.Requeue(wait)
	if len(problems) == 0 && len(outcome.Problems) > 0 { // the API server did not answer, which may be over soon
		r.keep(p, outcome.Resources)
		return nil
	}
	shown := *outcome
	shown.Problems = problems
	conditions, fields, err := kind.judge(ctx, p, shown)
	if err != nil {
		return err
	}
	if p.instance == nil {
		for i := range conditions {
			conditions[i].ObservedGeneration = p.configuration.Generation
		}
	}
	now := status{Conditions: merge(p.stored.Conditions, conditions), Resources: outcome.Resources, Fields: fields}
	if equality.Semantic.DeepEqual(p.stored, now) {
		r.update(p.parent, (*record).reported)
	} else {
		r.update(p.parent, func(known *record) { wait = known.hold(now, p.paceOf(now), time.Now()) })
		if wait > 0 {
			outcome.Requeue(wait)
			if equality.Semantic.DeepEqual(p.stored.Conditions, now.Conditions) {
				r.reconciled(p)
			}
			return nil
		}
		if err := r.write(ctx, p, now); err != nil {
			return err
		}
		r.events.conditionsChanged(ctx, p.object, p.stored.Conditions, now.Conditions)
	}
	r.reconciled(p)
	return r.converger.Release(ctx, p.parent, p.object.GetFinalizers(), now.Resources)
}

// reconciled records that an Instance was reconciled for the present generation of its
// Configuration, and has the conditions of that pass. The first time, it requeues the
// group, because an Instance that has not changed causes no event.
func (m *memory) reconciled(p *pass) {
	if p.instance == nil || p.configuration == nil {
		return
	}
	first := false
	m.update(p.parent, func(known *record) {
		first = known.generation != p.configuration.Generation
		known.generation = p.configuration.Generation
	})
	if first {
		group := ownership.ConfigurationParent(p.configuration)
		m.queues.addAfter(group, m.delay(group.NamespacedName))
	}
}

// merge returns the conditions of a status with those of a pass. If only the time of one
// differs, it keeps the former.
func merge(stored, now []metav1.Condition) []metav1.Condition {
	merged := slices.DeleteFunc(slices.Clone(stored), func(c metav1.Condition) bool {
		return c.Type == v0.ConditionReady && c.Reason == v0.ReasonPending // the default
	})
	for _, condition := range now {
		meta.SetStatusCondition(&merged, condition)
	}
	if meta.IsStatusConditionTrue(merged, v0.ConditionAccepted) {
		meta.RemoveStatusCondition(&merged, v0.ConditionStalled)
	}
	return merged
}

// write writes a status: of the inventory, which may be large, only if it differs from the
// stored one.
func (r *parentReconciler) write(ctx context.Context, p *pass, now status) error {
	fields := maps.Clone(now.Fields)
	fields["conditions"] = now.Conditions
	if !equality.Semantic.DeepEqual(p.stored.Resources, now.Resources) {
		fields["resources"] = now.Resources
	}
	version, err := r.client.PatchStatus(ctx, p.parent, fields)
	if err == nil && version != "" { // otherwise it no longer exists
		judged := !equality.Semantic.DeepEqual(p.stored.Conditions, now.Conditions)
		r.update(p.parent, func(known *record) {
			known.expected, known.written, known.judged = version, time.Now(), judged
			known.reported()
		})
	}
	return err
}
