package informers

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/templating/readywhen"
)

// informer is the watch of one resource. The fields below shared are guarded by
// the lock of the Informers that it belongs to.
type informer struct {
	all      *Informers
	resource schema.GroupVersionResource
	// keepsContent reports that the objects keep their content for conditions. It
	// does not change.
	keepsContent bool
	shared       cache.SharedIndexInformer

	cancel  context.CancelFunc
	synced  bool
	err     error
	waiting map[ownership.Parent]bool
	// applied holds the answers to applies that the watch has not caught up with.
	applied map[types.NamespacedName]note
	// conditions are the ready-when conditions of existing objects.
	conditions   map[types.NamespacedName]*readywhen.Condition
	contentAsked time.Time // when a parent last asked with a condition
	unusedSince  time.Time
}

// byParent is the index of objects by the parent that their labels name.
const byParent = "parent"

// key returns the value of the index for a parent.
func key(parent ownership.Parent) string {
	return fmt.Sprint(int(parent.Level), " ", parent.NamespacedName)
}

func newInformer(all *Informers, resource schema.GroupVersionResource, content bool) *informer {
	client := all.client.Resource(resource)
	ours := v0.LabelManagedBy + "=" + v0.ManagedBy
	n := &informer{
		all:          all,
		resource:     resource,
		keepsContent: content,
		waiting:      map[ownership.Parent]bool{},
		applied:      map[types.NamespacedName]note{},
		conditions:   map[types.NamespacedName]*readywhen.Condition{},
	}
	events := decoder{answered: n.answered, trim: n.trim}
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = ours
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = ours
			return all.streams.open(ctx, resource, options, events)
		},
	}
	n.shared = cache.NewSharedIndexInformer(lister, &Object{}, 0, cache.Indexers{
		byParent: func(object any) ([]string, error) {
			return []string{key(object.(*Object).Parent)}, nil
		},
	})
	// Both setters refuse only an informer that runs already.
	_ = n.shared.SetTransform(n.transform)
	_ = n.shared.SetWatchErrorHandlerWithContext(n.failed)
	return n
}

// run watches until ctx ends.
func (n *informer) run(ctx context.Context) {
	registration, err := n.shared.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.saw(nil, object.(*Object)) },
		UpdateFunc: func(old, object any) { n.saw(old.(*Object), object.(*Object)) },
		DeleteFunc: n.lost,
	})
	if err != nil {
		return // the informer was stopped before it ran
	}
	n.all.finished.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			n.becameReady()
		}
	})
	n.shared.RunWithContext(ctx)
}

func (n *informer) stop() {
	if n.cancel != nil {
		n.cancel()
	}
}

// state returns the state of the watch. The caller holds the lock.
func (n *informer) state() State { return State{Synced: n.synced, Err: n.err} }

// judge sets the condition by which an existing object's parent judges it. The
// caller holds the lock.
func (n *informer) judge(object types.NamespacedName, condition *readywhen.Condition) {
	if condition == nil {
		delete(n.conditions, object)
		return
	}
	n.conditions[object] = condition
}

// get returns an object as last seen or applied. The caller holds the lock.
func (n *informer) get(name types.NamespacedName) (*Object, bool) {
	seen, found := n.seen(name)
	if noted, ok := n.applied[name]; ok && (!found || noted.object.newer(seen)) {
		return noted.object, true
	}
	return seen, found
}

// seen returns an object as the watch has last seen it.
func (n *informer) seen(name types.NamespacedName) (*Object, bool) {
	object, found, err := n.shared.GetStore().GetByKey(cache.NewObjectName(name.Namespace, name.Name).String())
	if err != nil || !found {
		return nil, false
	}
	return object.(*Object), true
}
