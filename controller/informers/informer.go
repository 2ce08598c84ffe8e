package informers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/backoff"
)

// listTimeout bounds a request for a list, which the API server may never answer.
const listTimeout = 2 * time.Minute

// resourceInformer is the watch of one resource.
type resourceInformer struct {
	*store
	all       *Informers
	log       logr.Logger
	reflector *cache.Reflector

	// Guarded by the lock of the Informers.
	cancel      context.CancelFunc
	unusedSince time.Time

	state struct {
		sync.Mutex
		health
		waiting map[ownership.Parent]bool
		current *stream
	}
}

func newInformer(all *Informers, resource schema.GroupVersionResource) *resourceInformer {
	r := &resourceInformer{all: all, log: all.log.WithValues("group", resource.Group, "resource", resource.Resource)}
	r.state.timing = all.timing
	r.state.waiting = map[ownership.Parent]bool{}
	r.store = newStore(r.log, all.notify, r.listed)
	r.store.awaited, r.store.resource = &all.awaited, resource
	ours := v0.LabelManagedBy + "=" + v0.ManagedBy
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			var list objectList
			version, err := all.client.List(ctx, resource, metav1.NamespaceAll, ours, func(full *unstructured.Unstructured) bool {
				list.Items = append(list.Items, r.read(full))
				return true
			})
			list.ResourceVersion = version
			return &list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = ours
			return all.streams.open(ctx, resource, options, r, decoder{recentlyApplied: r.recentlyApplied, trim: r.read})
		},
	}
	r.reflector = cache.NewReflectorWithOptions(lister, &Object{}, r.store, cache.ReflectorOptions{
		Name:            "akri/" + resource.String(),
		TypeDescription: resource.GroupResource().String(),
		Backoff:         &wait.Backoff{Duration: all.timing.minDelay, Cap: all.timing.maxDelay, Steps: 5, Factor: 2, Jitter: 1},
	})
	return r
}

// run watches until ctx ends.
func (r *resourceInformer) run(ctx context.Context) {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := r.reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.failed(err)
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
	r.check(time.Now())
}

// failed records why the API server does not let the controller list or watch.
func (r *resourceInformer) failed(err error) {
	r.log.V(1).Info("Failed to list or watch", "err", err)
	now := time.Now()
	r.state.Lock()
	r.state.fail(now, err)
	r.state.Unlock()
	r.check(now)
}

// The methods of [observer].

func (r *resourceInformer) streamRequested(requested *stream) {
	r.state.Lock()
	defer r.state.Unlock()
	r.state.request(time.Now())
	r.state.current = requested
}

func (r *resourceInformer) streamOpened() {
	r.state.Lock()
	defer r.state.Unlock()
	r.state.open(time.Now())
}

func (r *resourceInformer) streamHeard() {
	r.state.Lock()
	defer r.state.Unlock()
	r.state.heard = true
}

func (r *resourceInformer) streamClosed(err error) {
	if err != nil {
		r.log.V(1).Info("The watch ended", "err", err)
	}
	r.state.Lock()
	defer r.state.Unlock()
	r.state.closed(time.Now(), err)
	r.state.current = nil
}

// renew ends the current stream. The reflector then watches again, which fails if
// the resource is no longer served.
func (r *resourceInformer) renew() {
	r.state.Lock()
	current := r.state.current
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
	found := r.state.check(now)
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
