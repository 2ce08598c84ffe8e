package converge

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"akri.sh/akri/controller/apply"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
)

// maxDeletions bounds the concurrent deletions of one [Converger.Collect].
const maxDeletions = 4

// Collect deletes the objects of a parent that no longer exists. Garbage collection
// deletes them, too, but about twenty a second in the whole cluster. Collect
// therefore leaves to it whatever is in doubt, and what fails: an object is deleted
// only in the version that was last seen, which had no other owner. A parent that was
// deleted with --cascade=orphan no longer owned its objects when it went, so each of
// them has a later version.
//
// It returns how many objects were deleted.
func (c *Converger) Collect(ctx context.Context, parent ownership.Parent, account types.NamespacedName) int {
	dependents := c.Informers.Dependents(parent)
	if len(dependents) == 0 {
		return 0
	}
	client := c.Client.As(account)
	var deleted atomic.Int32
	group, requests := errgroup.WithContext(ctx)
	group.SetLimit(maxDeletions)
	for _, dependent := range dependents {
		group.Go(func() error {
			object := dependent.Object
			name := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
			if _, found := c.Informers.Get(dependent.Resource, name); !found {
				return nil // garbage collection was faster
			}
			err := client.Delete(requests, dependent.Resource, name, object.UID, object.ResourceVersion)
			if err == nil {
				deleted.Add(1)
				c.Observer.Did(plan.Delete)
			}
			if errors.Is(err, apply.ErrChanged) || apierrors.IsForbidden(err) {
				return nil // the next object may still be deleted
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		log.FromContext(ctx).Error(err, "Left the objects of a parent that no longer exists to garbage collection", "parent", parent.String())
	}
	if deleted.Load() > 0 {
		log.FromContext(ctx).Info("Deleted the objects of a parent that no longer exists", "parent", parent.String(), "objects", deleted.Load())
	}
	return int(deleted.Load())
}
