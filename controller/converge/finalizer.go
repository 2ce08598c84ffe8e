package converge

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/inventory"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/templating"
)

// Finalize removes the objects that garbage collection does not remove with a
// parent that is being deleted, or disowns them if the parent is deleted without its
// objects. The Outcome's Resources are the remaining ones.
func (c *Converger) Finalize(
	ctx context.Context, parent ownership.Parent, account types.NamespacedName, recorded []v0.ResourceStatus, known *History, orphans bool,
) Outcome {
	p := c.newPass(parent, account, recorded, known)
	p.execute(ctx, plan.Teardown(parent, p.recorded, orphans))
	return p.Outcome
}

// recordFirst adds the finalizer to a parent and then records the objects that are about
// to be created out of garbage collection's reach: a crash must not leak them.
func (p *pass) recordFirst(ctx context.Context, request Request, unrecorded []v0.ResourceStatus) error {
	if len(unrecorded) == 0 {
		return nil
	}
	var account types.NamespacedName
	if p.parent.Level == templating.InstanceLevel { // its Configuration may be deleted first
		account = request.Account
	}
	if err := p.Client.Finalize(ctx, p.parent, account); err != nil {
		return err
	}
	recorded := append(slices.Clone(p.recorded), unrecorded...)
	inventory.Sort(recorded)
	return request.Record(recorded)
}

// Release removes the finalizer from a parent whose inventory no longer needs it.
func (c *Converger) Release(ctx context.Context, parent ownership.Parent, finalizers []string, recorded []v0.ResourceStatus) error {
	if !slices.Contains(finalizers, v0.FinalizerCleanup) || plan.NeedsFinalizer(parent, recorded) {
		return nil
	}
	return c.Client.Unfinalize(ctx, parent)
}
