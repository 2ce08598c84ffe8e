package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/backoff"
)

// selector selects the objects that the controller applied where garbage collection does
// not reach them, and may remove.
const selector = v0.LabelManagedBy + "=" + v0.ManagedBy + "," + v0.LabelOwner + "," +
	v0.LabelDeletionPolicy + "!=" + v0.DeletionPolicyOrphan

// maxFirst bounds the time from the start to the first sweep.
const maxFirst = 10 * time.Minute

// Sweeper removes strays.
type Sweeper struct {
	kinds   discovery.DiscoveryInterface
	objects *objects.Client
	every   time.Duration
}

// New returns a Sweeper with an interval.
func New(kinds discovery.DiscoveryInterface, api *objects.Client, every time.Duration) *Sweeper {
	return &Sweeper{kinds: kinds, objects: api, every: every}
}

// Run sweeps at the interval until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	for delay := min(maxFirst, s.every); backoff.Sleep(ctx, delay); delay = s.every {
		if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "The sweep is incomplete")
		}
	}
	return nil
}

// Sweep searches all kinds that the controller may list, and returns how many strays
// it has removed. It continues after an error.
func (s *Sweeper) Sweep(ctx context.Context) (removed int, err error) {
	resources, err := s.resources()
	failures := []error{err}
	for _, resource := range resources {
		n, err := s.sweep(ctx, resource)
		removed += n
		if err != nil {
			failures = append(failures, fmt.Errorf("sweep %s: %w", resource.GroupResource(), err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return removed, errors.Join(failures...)
}

// resources returns the resources whose objects can be listed and deleted, each in
// one version. An API group that does not answer is left out, with an error.
func (s *Sweeper) resources() ([]schema.GroupVersionResource, error) {
	lists, err := s.kinds.ServerPreferredResources()
	if err != nil {
		err = fmt.Errorf("list the kinds of the API server: %w", err)
	}
	all, invalid := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists))
	var resources []schema.GroupVersionResource
	for resource := range all {
		if resource.Group != v0.GroupVersion.Group {
			resources = append(resources, resource)
		}
	}
	return resources, errors.Join(err, invalid)
}

// candidate is an object that is a stray if its parent does not exist.
type candidate struct {
	types.NamespacedName
	version string
	state   ownership.State
}

func (s *Sweeper) sweep(ctx context.Context, resource schema.GroupVersionResource) (removed int, err error) {
	var candidates []candidate
	_, err = s.objects.List(ctx, resource, metav1.NamespaceAll, selector, func(object *unstructured.Unstructured) bool {
		name := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		state := ownership.Read(object) // labels count only if the controller has set them
		if state.Owner != "" && state.Named && !state.Terminating && len(object.GetOwnerReferences()) == 0 {
			candidates = append(candidates, candidate{name, object.GetResourceVersion(), state})
		}
		return true
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
		return 0, nil // the controller cannot have applied any
	}
	for i := 0; err == nil && i < len(candidates); i++ {
		var lives bool
		if lives, err = s.lives(ctx, candidates[i].state); err != nil || lives {
			continue
		}
		if err = s.remove(ctx, resource, candidates[i]); err == nil {
			removed++
		}
	}
	return removed, err
}

// lives reports whether the parent that removes an object exists. It asks the API server:
// if a cache lagged, objects of an existing parent would be removed.
func (s *Sweeper) lives(ctx context.Context, state ownership.State) (lives bool, err error) {
	parent, err := s.objects.Get(ctx, state.Parent.Resource(), state.Parent.NamespacedName)
	if err == nil {
		err = parent.Read(func(object *unstructured.Unstructured) { lives = object.GetUID() == state.Owner })
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %s: %w", state.Parent, err)
	}
	return lives, nil
}

func (s *Sweeper) remove(ctx context.Context, resource schema.GroupVersionResource, stray candidate) error {
	background := metav1.DeletePropagationBackground
	err := s.objects.Delete(ctx, resource, stray.NamespacedName, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &stray.state.UID, ResourceVersion: &stray.version},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has changed: left to the next sweep
	}
	if err == nil {
		log.FromContext(ctx).Info("Deleted a stray object",
			"resource", resource.GroupResource().String(), "namespace", stray.Namespace, "name", stray.Name,
			"reason", "its parent no longer exists")
	}
	return err
}
