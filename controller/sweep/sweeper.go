package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// selector selects the objects that the controller applied where garbage collection does
// not reach them, and may remove.
const selector = v0.LabelManagedBy + "=" + v0.ManagedBy + "," + v0.LabelOwner + "," +
	v0.LabelDeletionPolicy + "!=" + v0.DeletionPolicyOrphan

// maxFirst bounds the time from the start to the first sweep; pageSize is how many
// objects are read at once: the metadata of each may have more than a megabyte.
const (
	maxFirst = 10 * time.Minute
	pageSize = 10
)

// Sweeper removes strays.
type Sweeper struct {
	kinds   discovery.DiscoveryInterface
	objects metadata.Interface
	parents client.Reader
	every   time.Duration
}

// New returns a Sweeper with an interval. parents must read from the API server: if the
// reader lags, objects of an existing parent would be removed.
func New(kinds discovery.DiscoveryInterface, objects metadata.Interface, parents client.Reader, every time.Duration) *Sweeper {
	return &Sweeper{kinds: kinds, objects: objects, parents: parents, every: every}
}

// Run sweeps at the interval until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	timer := time.NewTimer(min(maxFirst, s.every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if _, err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				log.FromContext(ctx).Error(err, "The sweep is incomplete")
			}
			timer.Reset(s.every)
		}
	}
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

func (s *Sweeper) sweep(ctx context.Context, resource schema.GroupVersionResource) (removed int, err error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := s.objects.Resource(resource).List(ctx, options)
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return removed, nil // the controller cannot have applied any
		}
		if err != nil {
			return removed, err
		}
		for i := range page.Items {
			stray, err := s.stray(ctx, &page.Items[i])
			if err == nil && stray {
				err = s.remove(ctx, resource, &page.Items[i])
			}
			if err != nil {
				return removed, err
			}
			if stray {
				removed++
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return removed, nil
		}
	}
}

// stray reports whether the only parent that would remove the object no longer
// exists. Labels count only if the controller has set them.
func (s *Sweeper) stray(ctx context.Context, object *metav1.PartialObjectMetadata) (bool, error) {
	state := ownership.Read(object)
	if state.Owner == "" || !state.Named || state.Terminating || len(object.GetOwnerReferences()) > 0 {
		return false, nil
	}
	parent := &metav1.PartialObjectMetadata{}
	parent.SetGroupVersionKind(state.Parent.Kind())
	err := s.parents.Get(ctx, state.Parent.NamespacedName, parent)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %s: %w", state.Parent, err)
	}
	return err != nil || state.Owner != parent.UID, nil
}

func (s *Sweeper) remove(ctx context.Context, resource schema.GroupVersionResource, object *metav1.PartialObjectMetadata) error {
	background := metav1.DeletePropagationBackground
	err := s.objects.Resource(resource).Namespace(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has changed: left to the next sweep
	}
	if err == nil {
		log.FromContext(ctx).Info("Deleted a stray object",
			"resource", resource.GroupResource().String(), "namespace", object.Namespace, "name", object.Name,
			"reason", "its parent no longer exists")
	}
	return err
}
