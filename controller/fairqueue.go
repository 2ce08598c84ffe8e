package controller

import (
	"sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"akri.sh/akri/controller/converge"
)

// fairQueue is the queue of a controller. Namespaces take turns, so a namespace with
// many requests delays only its own, and it never has more than a number of requests
// in work, so long reconciles leave a worker to the others. Within a namespace the
// order is first in, first out: at a start, too, nothing that changes often overtakes
// what was not reconciled yet.
type fairQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	turns *turns
}

// newFairQueue returns a queue that gives at most limit requests of one namespace
// to the workers at a time. There must be more workers than that.
func newFairQueue(name string, limit int) *fairQueue {
	t := &turns{limit: limit, waiting: map[string][]reconcile.Request{}, working: map[string]int{}}
	ready := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: name, Queue: t})
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](converge.FirstRetry, maxRetry) // for errors
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{Name: name, Queue: ready})
	return &fairQueue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name, DelayingQueue: delaying}),
		turns: t,
	}
}

// Get returns the next request, and does not drain the queue when it shuts down.
func (q *fairQueue) Get() (reconcile.Request, bool) {
	request, shutdown := q.TypedRateLimitingInterface.Get()
	return request, shutdown || q.ShuttingDown()
}

// Done must be called for each request from Get. The worker then gets the next one,
// so a worker that waits because of the limit need not be woken.
func (q *fairQueue) Done(request reconcile.Request) {
	q.turns.done(request)
	q.TypedRateLimitingInterface.Done(request)
}

// turns decides which request is next. The queue calls all methods but done from
// under its lock.
type turns struct {
	limit int

	mu      sync.Mutex
	waiting map[string][]reconcile.Request // by namespace; never empty lists
	order   []string                       // the namespaces that wait; the first one is next
	working map[string]int                 // how many requests of a namespace are in work
}

var _ workqueue.Queue[reconcile.Request] = (*turns)(nil)

// Touch implements workqueue.Queue: a request that is added again keeps its place.
func (t *turns) Touch(reconcile.Request) {}

// Push implements workqueue.Queue.
func (t *turns) Push(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting[request.Namespace]) == 0 {
		t.order = append(t.order, request.Namespace)
	}
	t.waiting[request.Namespace] = append(t.waiting[request.Namespace], request)
}

// Len implements workqueue.Queue: it returns how many requests may be given out.
func (t *turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := 0
	for _, namespace := range t.order {
		count += max(0, min(len(t.waiting[namespace]), t.limit-t.working[namespace]))
	}
	return count
}

// Pop implements workqueue.Queue. The queue calls it only if Len is not 0.
func (t *turns) Pop() reconcile.Request {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, namespace := range t.order {
		if t.working[namespace] >= t.limit {
			continue
		}
		requests := t.waiting[namespace]
		next := requests[0]
		t.order = append(t.order[:i], t.order[i+1:]...)
		if requests = requests[1:]; len(requests) == 0 {
			delete(t.waiting, namespace)
		} else {
			t.waiting[namespace] = requests
			t.order = append(t.order, namespace)
		}
		t.working[namespace]++
		return next
	}
	return reconcile.Request{}
}

// done records that a request is no longer in work.
func (t *turns) done(request reconcile.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.working[request.Namespace]--; t.working[request.Namespace] == 0 {
		delete(t.working, request.Namespace)
	}
}
