package informers

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	resource  schema.GroupVersionResource
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
	n := &resourceInformer{all: all, resource: resource, log: all.log.WithValues("group", resource.Group, "resource", resource.Resource)}
	n.state.timing = all.timing
	n.state.waiting = map[ownership.Parent]bool{}
	n.store = newStore(n.log, all.notify, n.listed)
	client := all.client.Resource(resource)
	ours := v0.LabelManagedBy + "=" + v0.ManagedBy
	lister := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = ours
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = ours
			return all.streams.open(ctx, resource, options, n, decoder{answered: n.answered, trim: n.read})
		},
	}
	n.reflector = cache.NewReflectorWithOptions(lister, &Object{}, n.store, cache.ReflectorOptions{
		Name:            "akri/" + resource.String(),
		TypeDescription: resource.GroupResource().String(),
		Backoff:         &wait.Backoff{Duration: all.timing.minDelay, Cap: all.timing.maxDelay, Steps: 5, Factor: 2, Jitter: 1},
	})
	return n
}

// run watches until ctx ends.
func (n *resourceInformer) run(ctx context.Context) {
	for failures := 0; ; failures++ {
		began := time.Now()
		err := n.reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			n.failed(err)
		}
		if time.Since(began) > n.all.timing.maxDelay {
			failures = 0
		}
		delay := backoff.Delay(n.all.timing.minDelay, n.all.timing.maxDelay, failures)
		retry := time.NewTimer(delay + rand.N(delay/2))
		select {
		case <-ctx.Done():
			retry.Stop()
			return
		case <-retry.C:
		}
	}
}

func (n *resourceInformer) stop() {
	if n.cancel != nil {
		n.cancel()
	}
}

// listed is called after each list. The first one means that the informer has
// synced.
func (n *resourceInformer) listed() {
	n.state.Lock()
	if !n.state.synced {
		n.state.synced = true
		n.state.work()
	}
	n.state.Unlock()
	n.check(time.Now())
}

// failed records why the API server does not let the controller list or watch.
func (n *resourceInformer) failed(err error) {
	n.log.V(1).Info("Failed to list or watch", "err", err)
	now := time.Now()
	n.state.Lock()
	n.state.fail(now, err)
	n.state.Unlock()
	n.check(now)
}

// The methods of [observer].

func (n *resourceInformer) streamRequested(requested *stream) {
	n.state.Lock()
	defer n.state.Unlock()
	n.state.request(time.Now())
	n.state.current = requested
}

func (n *resourceInformer) streamOpened() {
	n.state.Lock()
	defer n.state.Unlock()
	n.state.open(time.Now())
}

func (n *resourceInformer) streamHeard() {
	n.state.Lock()
	defer n.state.Unlock()
	n.state.heard = true
}

func (n *resourceInformer) streamClosed(err error) {
	if err != nil {
		n.log.V(1).Info("The watch ended", "err", err)
	}
	n.state.Lock()
	defer n.state.Unlock()
	n.state.closed(time.Now(), err)
	n.state.current = nil
}

// renew ends the current stream. The reflector then watches again, which fails if
// the resource is no longer served.
func (n *resourceInformer) renew() {
	n.state.Lock()
	current := n.state.current
	n.state.Unlock()
	if current != nil {
		current.Stop()
	}
}

// ask returns the state of the watch. If it has not synced, or fails, the parent is
// notified of the next change.
func (n *resourceInformer) ask(parent ownership.Parent) State {
	n.state.Lock()
	defer n.state.Unlock()
	state := n.state.state()
	if !state.Synced {
		n.state.waiting[parent.ByName()] = true
	}
	return state
}

func (n *resourceInformer) current() State {
	n.state.Lock()
	defer n.state.Unlock()
	return n.state.state()
}

// check reports a failure of the watch that lasts, and its end: it logs and
// notifies the waiting parents and the users of the resource.
func (n *resourceInformer) check(now time.Time) {
	n.state.Lock()
	found := n.state.check(now)
	state := n.state.state()
	var waiting []ownership.Parent
	if found != unchanged || state.Synced {
		for parent := range n.state.waiting {
			waiting = append(waiting, parent)
		}
		clear(n.state.waiting)
	}
	n.state.Unlock()
	switch found {
	case failed:
		n.log.Error(state.Err, "Cannot watch a resource; its objects are left alone until that is possible")
	case recovered:
		n.log.Info("The resource is watched again")
	}
	if found != unchanged {
		waiting = append(waiting, n.all.usersOf(n.resource)...)
	}
	for _, parent := range waiting {
		n.notify(parent)
	}
}
