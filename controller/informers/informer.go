package informers

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
)

// ours selects the objects with the controller's label.
const ours = v0.LabelManagedBy + "=" + v0.ManagedBy

// resourceInformer is the watch of one resource.
type resourceInformer struct {
	*store
	all      *Informers
	resource schema.GroupVersionResource
	log      logr.Logger
	client   dynamic.ResourceInterface
	// open is the latest watch; nil while there is none. listing is when it began, if it begins
	// with a list that has not arrived. The reflector uses one of them at a time.
	open    watch.Interface
	listing time.Time

	cancel context.CancelFunc

	// Guarded by the lock of the Informers.
	users  map[types.NamespacedName]bool // the Configurations that need it
	unused bool                          // it had no users when that was last checked

	stateMu sync.Mutex
	health  health
	waiting map[ownership.Parent]bool
}

// newInformer returns an informer that runs until it is canceled.
func newInformer(all *Informers, resource schema.GroupVersionResource) *resourceInformer {
	r := &resourceInformer{
		all: all, resource: resource, client: all.client.Resource(resource),
		log:   all.log.WithValues("group", resource.Group, "resource", resource.Resource),
		users: map[types.NamespacedName]bool{}, health: health{pace: all.pace}, waiting: map[ownership.Parent]bool{},
	}
	gone := func(isGone func(types.NamespacedName) bool) { all.gone(resource, isGone) }
	r.store = newStore(all.notify, gone, r.listed)
	source := &cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}
	reflector := cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, r.store, cache.ReflectorOptions{
		Name:            "akri/" + resource.String(),
		TypeDescription: resource.GroupResource().String(),
		Backoff:         &wait.Backoff{Duration: all.pace / 36, Cap: all.pace / 6, Steps: 5, Factor: 2, Jitter: 1},
	})
	// To client-go, a watch that is stopped may look like an internal error of the API server, after
	// which it would list all objects again instead of beginning the next watch.
	reflector.MaxInternalErrorRetryDuration = all.pace
	ctx, cancel := context.WithCancel(all.ctx)
	r.cancel = cancel
	go reflector.RunWithContext(klog.NewContext(ctx, logr.Discard())) // its own log would repeat each failure
	return r
}

// list reads the objects, from an API server that cannot send them as a watch. It keeps of each
// what the store keeps, before it reads the next ones.
func (r *resourceInformer) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	r.expectList(false)
	r.open = nil
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, 10*r.all.pace)
	defer cancel()
	var list objectList
	version, err := r.all.single.List(ctx, r.resource, metav1.NamespaceAll, ours, func(full *unstructured.Unstructured) bool {
		var object any
		object, _ = r.transform(full)
		list.Items = append(list.Items, object.(*Object))
		return true
	})
	if err != nil {
		r.failed(began, err)
	}
	list.ResourceVersion = version
	return &list, err
}

// watch begins a watch that ends before long, also if the API server forgets to end it. A new
// one notices a permission that was revoked, and no event is lost between two. One that begins
// with a list may last longer, so that the list arrives.
func (r *resourceInformer) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	lasts := r.all.pace + rand.N(r.all.pace/3) // so that watches do not end together
	lists := options.SendInitialEvents != nil && *options.SendInitialEvents
	r.expectList(lists)
	if lists {
		lasts = 10 * r.all.pace
	}
	options.LabelSelector, options.TimeoutSeconds = ours, new(max(1, int64(lasts.Seconds())))
	ctx, cancel := context.WithTimeout(ctx, lasts+r.all.pace/3)
	context.AfterFunc(ctx, cancel)
	began := time.Now()
	events, err := r.client.Watch(ctx, options)
	if err != nil {
		r.open, r.listing = nil, time.Time{}
		r.failed(began, err)
		return nil, err
	}
	r.open = events
	if !lists {
		r.change(health.works)
	}
	return events, nil
}

// expectList is called before a list or watch, which may begin with a list. If the list of the
// former one has not arrived, that one has failed, although client-go saw no error.
func (r *resourceInformer) expectList(lists bool) {
	if !r.listing.IsZero() {
		r.failed(r.listing, errSilent)
	}
	if r.listing = (time.Time{}); lists {
		r.listing = time.Now()
	}
}

// listed is called after each list. The first one means that the informer has synced. That a
// list arrives does not prove that the resource can be watched.
func (r *resourceInformer) listed() {
	r.listing = time.Time{}
	if r.open != nil {
		time.AfterFunc(r.all.pace, r.open.Stop)
	}
	r.change(func(h health) health {
		h.synced = true
		if r.open != nil {
			h = h.works()
		}
		return h
	})
}

// failed records since when, and why, the API server does not let the controller list or watch.
func (r *resourceInformer) failed(since time.Time, err error) {
	r.log.V(1).Info("Failed to list or watch", "err", err)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errSilent
	}
	r.change(func(h health) health { return h.fails(since, time.Now(), err) })
}

// change changes the state of the watch. It notifies the waiting parents of that, and logs a
// failure or its end and notifies the users of the resource.
func (r *resourceInformer) change(change func(health) health) {
	r.stateMu.Lock()
	before := r.health
	r.health = change(before)
	state, reported := r.health.state(), (r.health.err == nil) != (before.err == nil)
	var parents []ownership.Parent
	if state.Synced || reported {
		parents = slices.Collect(maps.Keys(r.waiting))
		r.waiting = map[ownership.Parent]bool{} // at a start, all parents wait: clear would keep their space
	}
	r.stateMu.Unlock()
	if reported {
		parents = append(parents, r.all.usersOf(r)...)
		if state.Err != nil {
			r.log.Error(state.Err, "Cannot watch a resource; its objects are left unchanged until it can be watched")
		} else {
			r.log.Info("Watching the resource again")
		}
	}
	for _, parent := range parents {
		r.notify(parent)
	}
}

// await returns the state of the watch. If it has not synced, or fails, the parent is
// notified of the next change.
func (r *resourceInformer) await(parent ownership.Parent) State {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	state := r.health.state()
	if !state.Synced {
		r.waiting[parent.ByName()] = true
	}
	return state
}

func (r *resourceInformer) state() State {
	r.stateMu.Lock()
	defer r.stateMu.Unlock()
	return r.health.state()
}
