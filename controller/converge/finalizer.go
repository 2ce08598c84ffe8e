package converge

import (
	"context"
	"slices"
	"time"

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
	ctx context.Context, parent ownership.Parent, account types.NamespacedName, recorded []v0.ResourceStatus, orphans bool,
) Outcome {
	var result Outcome
	client, err := c.Clients.As(account)
	if err != nil {
		result.fail("spec.serviceAccountName", err)
		result.Resources = recorded
		return result
	}
	e := execution{Converger: c, client: client, parent: parent, now: time.Now(), result: &result}
	e.run(ctx, plan.Teardown(parent, recorded, orphans), recorded)
	inventory.Sort(result.Resources)
	return result
}

// recordFirst adds the finalizer to a parent and then records the objects that are about
// to be created out of garbage collection's reach: a crash must not leak them.
func (c *Converger) recordFirst(ctx context.Context, parent ownership.Parent, request Request, recorded []v0.ResourceStatus) error {
	var account types.NamespacedName
	if parent.Level == templating.InstanceLevel { // its Configuration may be deleted first
		account = request.Account
	}
	if err := c.Clients.Own().Finalize(ctx, parent, account); err != nil {
		return err
	}
	return request.Record(recorded)
}

// Release removes the finalizer from a parent whose inventory no longer needs it.
func (c *Converger) Release(ctx context.Context, parent ownership.Parent, finalizers []string, recorded []v0.ResourceStatus) error {
	if !slices.Contains(finalizers, v0.FinalizerCleanup) || plan.NeedsFinalizer(parent, recorded) {
		return nil
	}
	return c.Clients.Own().Unfinalize(ctx, parent)
}
