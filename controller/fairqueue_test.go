package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func fairQueueOf(limit int, requests ...reconcile.Request) *fairQueue {
	queue := newFairQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second), limit)
	for _, request := range requests {
		queue.Add(request)
	}
	return queue
}

// A namespace with many requests does not delay the few of others.
func TestNamespacesTakeTurns(t *testing.T) {
	queue := fairQueueOf(1)
	defer queue.ShutDown()
	for i := range 1000 {
		queue.Add(request("many", fmt.Sprint(i)))
	}
	for _, added := range []string{"x/1", "x/2", "y/1", "many/0", "x/1"} { // those that wait keep their place
		namespace, name, _ := strings.Cut(added, "/")
		queue.Add(request(namespace, name))
	}
	var got []string
	for range 7 {
		next, _ := queue.Get()
		got = append(got, next.String())
		queue.Done(next)
	}
	if want := []string{"many/0", "x/1", "y/1", "many/1", "x/2", "many/2", "many/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A namespace whose requests take long leaves a worker to the others.
func TestLongReconcilesLeaveAWorker(t *testing.T) {
	queue := fairQueueOf(2, request("long", "1"), request("long", "2"), request("long", "3"), request("other", "1"))
	defer queue.ShutDown()
	var got []string
	for range 3 {
		next, _ := queue.Get()
		got = append(got, next.String())
	}
	slices.Sort(got)
	if want := []string{"long/1", "long/2", "other/1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if queue.Len() != 0 {
		t.Errorf("%d requests may be given out, want none of the namespace that has two in work", queue.Len())
	}
	queue.Add(request("long", "1")) // again, while it is in work
	queue.Done(request("long", "1"))
	for _, want := range []string{"long/3", "long/1"} {
		next, _ := queue.Get()
		if next.String() != want {
			t.Errorf("got %s, want %s", next, want)
		}
		queue.Done(next)
	}
}

// No request is lost, none is worked on twice at a time, and no namespace exceeds
// its limit, however many workers there are.
func TestFairQueueUnderLoad(t *testing.T) {
	const workers, limit, namespaces, each = 5, 4, 3, 300
	const total = namespaces * (each + 90) // 90 names have two digits, and are added again with another
	queue := fairQueueOf(limit)
	var mu sync.Mutex
	inWork, working, done := map[reconcile.Request]bool{}, map[string]int{}, map[reconcile.Request]bool{}
	finished, closed := make(chan struct{}), false
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for {
				next, shutdown := queue.Get()
				if shutdown {
					return
				}
				mu.Lock()
				if inWork[next] {
					t.Errorf("%s is in work twice", next)
				}
				inWork[next] = true
				if working[next.Namespace]++; working[next.Namespace] > limit {
					t.Errorf("%d requests of a namespace in work", working[next.Namespace])
				}
				mu.Unlock()
				if len(next.Name)%2 == 0 {
					queue.AddRateLimited(request(next.Namespace, next.Name+"x"))
				}
				mu.Lock()
				inWork[next] = false
				working[next.Namespace]--
				if done[next] = true; len(done) == total && !closed {
					closed = true
					close(finished)
				}
				mu.Unlock()
				queue.Done(next)
			}
		})
	}
	for i := range each {
		for n := range namespaces {
			queue.Add(request(fmt.Sprint("ns-", n), fmt.Sprint(i)))
		}
	}
	select {
	case <-finished:
	case <-time.After(20 * time.Second):
		mu.Lock()
		t.Errorf("%d of %d requests were worked on", len(done), total)
		mu.Unlock()
	}
	queue.ShutDown()
	group.Wait()
}
