package informers

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/backoff"
)

// ours selects the objects with the controller's label.
const ours = v0.LabelManagedBy + "=" + v0.ManagedBy

// resourceInformer is the watch of one resource.
type resourceInformer struct {
	*store
	all       *Informers
	log       logr.Logger
	client    dynamic.ResourceInterface
	reflector *cache.Reflector
	heard     atomic.Int64 // when something was received, in nanoseconds since 1970

	// Guarded by the lock of the Informers.
	cancel      context.CancelFunc
	unusedSince time.Time

	state struct {
		sync.Mutex
		health
		waiting map[ownership.Parent]bool
		// current is the latest watch, or nil; ctx ends with it, by release at the latest.
		current watch.Interface
		ctx     context.Context //nolint:containedctx // its cause says why the watch has ended
		release context.CancelCauseFunc
	}
}

func newInformer(all *Informers, resource schema.GroupVersionResource) *resourceInformer {
	r := &resourceInformer{
		all: all, log: all.log.WithValues("group", resource.Group, "resource", resource.Resource), client: all.client.Resource(resource),
	}
	r.state.timing = all.timing
	r.state.waiting = map[ownership.Parent]bool{}
	r.state.ctx, r.state.release = context.Background(), func(error) {}
	r.store = newStore(r.log, all.notify, r.listed)
	r.store.received = func() { r.heard.Store(time.Now().UnixNano()) }
	r.store.awaited, r.store.resource = &all.awaited, resource
	source := &cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}
	r.reflector = cache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, r.store, cache.ReflectorOptions{
		Name:            "akri/" + resource.String(),
		TypeDescription: resource.GroupResource().String(),
		Backoff:         &wait.Backoff{Duration: all.timing.minDelay, Cap: all.timing.maxDelay, Steps: 5, Factor: 2, Jitter: 1},
	})
	return r
}

// list reads the objects, from an API server that cannot send them as a watch. It keeps of each
// what the store keeps, before it reads the next ones.
func (r *resourceInformer) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(ctx, r.all.timing.list)
	defer cancel()
	var list objectList
	version, err := r.all.single.List(ctx, r.resource, metav1.NamespaceAll, ours, func(full *unstructured.Unstructured) bool {
		list.Items = append(list.Items, r.read(full))
		return true
	})
	list.ResourceVersion = version
	return &list, err
}

// watch begins a watch that ends before long, also if the API server forgets to end it. One
// that begins with a list may last longer, as long as the list arrives.
func (r *resourceInformer) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	r.ended()
	lasts := r.all.timing.request + rand.N(r.all.timing.request/3)
	limit := lasts + r.all.timing.delayedEnd
	listing := options.SendInitialEvents != nil && *options.SendInitialEvents
	if listing {
		lasts, limit = r.all.timing.list, r.all.timing.pause
	}
	options.LabelSelector, options.TimeoutSeconds = ours, new(max(1, int64(lasts.Seconds())))
	ctx, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	r.heard.Store(began.UnixNano())
	go r.expire(ctx, cancel, limit, listing)
	events, err := r.client.Watch(ctx, options)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		cancel(nil)
		r.failed(began, err)
		return nil, err
	}
	r.state.Lock()
	defer r.state.Unlock()
	r.state.open(time.Now())
	r.state.current, r.state.ctx, r.state.release = events, ctx, cancel
	return events, nil
}

// expire ends a watch at its limit. As long as the list arrives with which it begins, the limit
// is the time between two objects.
func (r *resourceInformer) expire(ctx context.Context, end context.CancelCauseFunc, limit time.Duration, listing bool) {
	for left := limit; left > 0; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
		left = 0
		if listing {
			left = limit - time.Since(time.Unix(0, r.heard.Load()))
		}
	}
	end(errSilent)
}

// ended takes note of the end of the watch before, if there was one.
func (r *resourceInformer) ended() {
	r.state.Lock()
	defer r.state.Unlock()
	if errors.Is(context.Cause(r.state.ctx), errSilent) {
		r.state.silence()
	}
	r.state.release(nil)
	r.state.end(time.Now())
}

// run watches until ctx ends.
func (r *resourceInformer) run(ctx context.Context) {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := r.reflector.ListAndWatchWithContext(ctx)
		r.ended()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.failed(time.Now(), err)
		}
		if time.Since(began) > r.all.timing.maxDelay {
			failures = 0
		}
		delay := backoff.Delay(r.all.timing.minDelay, r.all.timing.maxDelay, failures)
		retry := time.NewTimer(delay + rand.N(delay/2))
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

func (r *resourceInformer) stop() {
	if r.cancel != nil {
		r.cancel()
	}
}

// listed is called after each list. The first one means that the informer has
// synced.
func (r *resourceInformer) listed() {
	r.state.Lock()
	if !r.state.synced {
		r.state.synced = true
		r.state.work()
	}
	r.state.Unlock()
	time.AfterFunc(r.all.timing.request, r.renew) // the watch that began with the list would last longer than others
	r.check(time.Now())
}

// failed records since when, and why, the API server does not let the controller list or watch.
func (r *resourceInformer) failed(since time.Time, err error) {
	r.log.V(1).Info("Failed to list or watch", "err", err)
	r.state.Lock()
	r.state.fail(since, err)
	r.state.Unlock()
	r.check(time.Now())
}

// renew ends the current watch. The reflector then watches again, which fails if
// the resource is no longer served.
func (r *resourceInformer) renew() {
	r.state.Lock()
	current := r.state.current
	r.state.abandon()
	r.state.Unlock()
	if current != nil {
		current.Stop()
	}
}

// await returns the state of the watch. If it has not synced, or fails, the parent is
// notified of the next change.
func (r *resourceInformer) await(parent ownership.Parent) State {
	r.state.Lock()
	defer r.state.Unlock()
	state := r.state.state()
	if !state.Synced {
		r.state.waiting[parent.ByName()] = true
	}
	return state
}

func (r *resourceInformer) current() State {
	r.state.Lock()
	defer r.state.Unlock()
	return r.state.state()
}

// check reports a failure of the watch that lasts, and its end: it logs and
// notifies the waiting parents and the users of the resource.
func (r *resourceInformer) check(now time.Time) {
	r.state.Lock()
	found := r.state.report(now)
	state := r.state.state()
	var waiting []ownership.Parent
	if found != unchanged || state.Synced {
		for parent := range r.state.waiting {
			waiting = append(waiting, parent)
		}
		r.state.waiting = map[ownership.Parent]bool{} // at a start, all parents wait: clear would keep their space
	}
	r.state.Unlock()
	switch found {
	case failed:
		r.log.Error(state.Err, "Cannot watch a resource; its objects are left alone until that is possible")
	case recovered:
		r.log.Info("The resource is watched again")
	}
	if found != unchanged {
		waiting = append(waiting, r.all.usersOf(r.resource)...)
	}
	for _, parent := range waiting {
		r.notify(parent)
	}
}
