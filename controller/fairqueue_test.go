package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func fairQueueOf(limit int, requests ...reconcile.Request) *fairQueue {
	queue := newFairQueue("", limit)
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
	queue.Add(request("other", "2")) // later than those that wait
	if next, _ := queue.Get(); next != request("other", "2") {
		t.Errorf("got %s, want that of the other namespace", next)
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
