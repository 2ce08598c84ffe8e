package converge

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/finding"
	"akri.sh/akri/internal/text"
	"akri.sh/akri/templating"
)

// maxChanged is in how many passes in a row an object may change under the plan
// before that is a problem: something answers each request with a conflict.
const maxChanged = 3

// execute carries out the steps of a plan, and writes the new inventory into the outcome.
func (p *pass) execute(ctx context.Context, steps []plan.Step) {
	mayDelete := len(p.Problems) == 0 && !p.Pending
	for _, step := range steps {
		switch {
		case step.Desired == nil:
			p.remove(ctx, step, mayDelete)
			continue // one failing deletion does not stop the others
		case step.Action == plan.Hold && step.Recorded.Name == "":
			p.Uncreated++ // it is created when the change may be made
		default:
			p.Resources = append(p.Resources, p.apply(ctx, step))
		}
		mayDelete = len(p.Problems) == 0 && !p.Pending // after a failed apply, what would be deleted may still be needed
	}
	p.reportContention(steps) // last: contention must not keep anything from being pruned
	inventory.Sort(p.Resources)
	if len(p.Resources) > plan.FewObjects {
		for i := range p.Resources {
			p.Resources[i].Reason = text.Truncate(p.Resources[i].Reason, plan.MaxReason)
		}
	}
}

// remove carries out a step for an object that is not desired. If the object may exist
// afterwards, its entry stays.
func (p *pass) remove(ctx context.Context, step plan.Step, mayDelete bool) {
	if step.Action != plan.Release && (step.Action != plan.Delete || !mayDelete) {
		p.keep(step.Recorded)
		return
	}
	message, err := "Released", error(nil)
	switch {
	case step.Action == plan.Delete:
		var deleted bool
		if deleted, err = p.onServed(step, func(resource schema.GroupVersionResource) (bool, error) {
			return p.client.DeleteIf(ctx, resource, step.Ref.NamespacedName(), step.Claim.Deletes)
		}); deleted {
			message = "Deleted"
		} else {
			message, step.Action = "Released, because its parent does not own it", plan.Release
		}
	case step.Disown: // it stays, and is nobody's
		_, err = p.onServed(step, func(resource schema.GroupVersionResource) (bool, error) {
			return true, p.client.DisownIf(ctx, resource, step.Ref.NamespacedName(), step.Claim.Deletes)
		})
	}
	if err != nil {
		p.failed(step, step.Ref.String(), err)
		p.keep(step.Recorded)
		return
	}
	p.known.drop(step.UID)
	log.FromContext(ctx).Info(message, "child", step.Ref.String(), "reason", step.Reason)
	p.Observer.Did(step.Action)
}

// onServed calls a function with the resource of an object that is not desired. If its kind
// no longer exists, neither does the object.
func (p *pass) onServed(step plan.Step, remove func(schema.GroupVersionResource) (done bool, err error)) (done bool, err error) {
	mapping, err := plan.Served(p.Mapper, step.Kind)
	switch {
	case meta.IsNoMatchError(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look up the resource of %s: %w", step.Kind, err)
	case (mapping.Scope.Name() == meta.RESTScopeNameNamespace) != (step.Ref.Namespace != ""):
		return true, nil // the kind was deleted with its objects, and defined again
	}
	return remove(mapping.Resource)
}

// keep keeps the entry of an object that is neither desired nor deleted, to find the
// object again. In an inventory that is full, only those are kept whose objects could
// not be found by their owner.
func (p *pass) keep(entry v0.ResourceStatus) {
	collected := p.parent.Collected(entry.Namespace)
	if entry.Name == "" || entry.UID == "" && collected {
		return
	}
	if len(p.Resources) < plan.MaxRecorded || !collected || entry.Orphan {
		p.Resources = append(p.Resources, entry)
	}
}

// apply carries out a step for a desired object, and returns its entry. Its error becomes
// a problem, or another pass.
func (p *pass) apply(ctx context.Context, step plan.Step) v0.ResourceStatus {
	entry, err := p.tryApply(ctx, step)
	if err != nil {
		entry = entryOf(step)
		entry.Reason = p.failed(step, step.Desired.Place, err)
	}
	return entry
}

// failed records the error of a step, and returns the reason of its problem. An
// object that has changed since the plan leads to another pass, the first times.
func (p *pass) failed(step plan.Step, place string, err error) (reason string) {
	if errors.Is(err, apply.ErrChanged) {
		dispute := p.known.about(step.Ref, p.now)
		if dispute.changed++; dispute.changed <= maxChanged {
			p.Pending = true
			p.Requeue(FirstRetry)
			return "it has changed since it was read"
		}
		err = apply.KeepsChangingError(step.Ref.String(), err)
	}
	p.fail(place, err)
	return p.Problems[len(p.Problems)-1].Reason
}

func (p *pass) tryApply(ctx context.Context, step plan.Step) (v0.ResourceStatus, error) {
	if step.Repair {
		if wait := p.known.wait(step.Ref, p.now); wait > 0 {
			p.Requeue(wait)
			return p.kept(step), nil
		}
		p.findManager(ctx, step)
	}
	switch step.Action {
	case plan.Keep, plan.Hold, plan.Wait:
		return p.kept(step), nil
	case plan.Skip:
		return skipped(step), nil
	case plan.Recreate:
		p.Observer.Replaced(p.parent, step.Ref, step.Reason)
		return p.recreate(ctx, step, step.Reason)
	}
	if orphaned, err := p.orphaned(ctx, step); err != nil || orphaned {
		return p.kept(step), err
	}
	if job, err := p.former(ctx, step); err != nil || job != "" {
		entry := step.Entry()
		entry.UID, entry.Hash, entry.Ready = string(job), step.Desired.Hash, true
		return entry, err
	}
	action, answer, err := p.client.Do(ctx, step)
	switch {
	case err != nil:
		return v0.ResourceStatus{}, err
	case action == plan.Skip:
		return skipped(step), nil
	case action == plan.Recreate:
		return p.recreate(ctx, step, "the template changes an immutable field")
	}
	if step.Repair {
		p.known.about(step.Ref, p.now).repairs++
	}
	log.FromContext(ctx).Info("Applied", "child", step.Ref.String(), "action", step.Action.String(), "reason", step.Reason)
	p.Observer.Did(step.Action)
	var object *informers.Object
	if err := answer.Read(func(applied *unstructured.Unstructured) {
		object = p.Informers.RecordApplied(step.Desired.Resource, applied, step.Desired.ReadyWhen)
	}); err != nil {
		return v0.ResourceStatus{}, err
	}
	p.known.apply(step.Ref, object.UID, types.UID(step.Recorded.UID))
	entry := step.Entry()
	entry.UID, entry.Hash, entry.ManagedFieldsHash = string(object.UID), step.Desired.Hash, object.ManagedFieldsHash
	entry.Ready, entry.Reason = object.ReadyBy(step.Desired.ReadyWhen)
	return entry, nil
}

// entryOf returns the entry of an object that is not applied in this pass.
func entryOf(step plan.Step) v0.ResourceStatus {
	entry := step.Entry()
	entry.UID, entry.Hash, entry.ManagedFieldsHash = step.Recorded.UID, step.Recorded.Hash, step.Recorded.ManagedFieldsHash
	return entry
}

// kept returns the entry of an object that is left alone.
func (p *pass) kept(step plan.Step) v0.ResourceStatus {
	entry := entryOf(step)
	object, exists := p.live(step.Desired)
	switch {
	case step.Action == plan.Wait:
		entry.Reason = fmt.Sprintf("waiting for the former %s to be deleted", step.Ref.Kind)
	case !exists && step.Repair:
		entry.Reason = "another client keeps deleting it"
	case !exists && step.Action == plan.Hold:
		entry.Reason = "it is created once the rollout allows it"
	case !exists:
		entry.Ready = true // applied once, and finished
	default:
		entry.Ready, entry.Reason = object.ReadyBy(step.Desired.ReadyWhen)
		if entry.Ready && object.Terminated && !step.Desired.Once {
			entry.Ready, entry.Reason = false, "the Pod has terminated and will be replaced"
		}
	}
	return entry
}

// skipped returns the entry of an object that belongs to another owner, if the
// template accepts that.
func skipped(step plan.Step) v0.ResourceStatus {
	entry := step.Entry()
	entry.Ready, entry.Reason = true, "skipped: it belongs to another owner"
	return entry
}

// orphaned reports whether an object has no owner reference any more because its parent
// is being deleted with --cascade=orphan. The watch of the object may be ahead of that
// of the parent, and an apply would give the object to the garbage collector.
func (p *pass) orphaned(ctx context.Context, step plan.Step) (bool, error) {
	object, exists := p.live(step.Desired)
	if !exists || object.Owner != "" || step.Desired.Orphans() || !p.parent.Collected(step.Ref.Namespace) {
		return false, nil
	}
	return p.Client.Deleting(ctx, p.parent) // a ServiceAccount may not read parents
}

// former returns the UID of a Job that the original Akri has created for the Instance,
// under another name, if the step would create one for brokerSpec. The work is then done,
// or being done: to create the Job would do it again. An Instance that has had a Job of
// its own gets the next one.
func (p *pass) former(ctx context.Context, step plan.Step) (types.UID, error) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	labels := (&unstructured.Unstructured{Object: step.Desired.Content}).GetLabels()
	if step.Action != plan.Create || !step.Desired.Once || step.Kind.GroupKind() != job ||
		p.parent.Level != templating.InstanceLevel || labels[apply.LabelOfAkri] != v0.Domain {
		return "", nil
	}
	for _, entry := range p.recorded {
		if inventory.KindOf(entry).GroupKind() == job && entry.UID != "" {
			return "", nil
		}
	}
	found, err := p.Client.FormerJob(ctx, step.Desired.Resource, p.parent) // a ServiceAccount may not list Jobs
	if found != "" {
		log.FromContext(ctx).Info("A Job of the original Akri has done the work", "child", step.Ref.String(), "uid", found)
	}
	return found, err
}

// recreate deletes an object that cannot be updated to the desired one. The watch
// sees the deletion, and the next pass creates the new object.
func (p *pass) recreate(ctx context.Context, step plan.Step, reason string) (v0.ResourceStatus, error) {
	entry := step.Entry()
	deleted, err := p.client.DeleteIf(ctx, step.Desired.Resource, step.Ref.NamespacedName(), func(live ownership.State) bool {
		return live.UID == step.UID && step.Claim.Owns(live)
	})
	if err == nil && !deleted {
		err = apply.ErrChanged
	}
	if err != nil {
		return entry, err
	}
	p.known.drop(step.UID)
	log.FromContext(ctx).Info("Deleted", "child", step.Ref.String(), "reason", "to be recreated: "+reason)
	p.Observer.Did(plan.Recreate)
	entry.UID, entry.Reason = string(step.UID), "being replaced"
	return entry, nil
}

// findManager looks up, once, which client keeps changing an object back, before a repair
// takes its fields. Its failure does not affect the repair.
func (p *pass) findManager(ctx context.Context, step plan.Step) {
	dispute := p.known.disputes[step.Ref]
	if step.Action != plan.Update || dispute == nil || dispute.repairs < MinRepairs-1 || dispute.manager != "" {
		return
	}
	manager, err := p.client.Managers(ctx, step.Desired.Resource, step.Ref.NamespacedName(), step.Desired.Content)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to look up the managers of a contended object", "child", step.Ref.String())
	}
	dispute.manager = manager
}

// reportContention adds a problem for each desired object that another client changes or
// deletes again and again.
func (p *pass) reportContention(steps []plan.Step) {
	for _, step := range steps {
		if dispute := p.known.disputes[step.Ref]; step.Desired != nil && dispute != nil && dispute.repairs >= MinRepairs {
			p.fail(step.Desired.Place, contentionError(step, dispute.manager))
			p.Requeue(dispute.over(p.now))
		}
	}
}

func contentionError(step plan.Step, manager string) error {
	who, hint := "another client keeps deleting it or changing it back",
		"stop the other client, or leave the fields that it changes out of the template"
	switch {
	case manager != "":
		who = manager + " keeps changing it back"
	case templating.Keys("spec", "ttlSecondsAfterFinished").Lookup(step.Desired.Content) != nil:
		who, hint = "Kubernetes deletes it when it has finished (spec.ttlSecondsAfterFinished)", `annotate its template akri.sh/once: "true"`
	}
	return &problem.Error{
		Reason: v0.ReasonContended, // does not heal: repairs are rate-limited separately
		Mistake: finding.Mistake{
			Cause: fmt.Sprintf("%s was repaired %d times or more, less than %d minutes apart, because %s",
				step.Ref, MinRepairs, int(Calm.Minutes()), who), // no count: the message must not change with each repair
			Hint: hint,
		},
	}
}
