package events

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// TestEvents checks that an API server accepts the Events, and that a repeated one is
// written once.
func TestEvents(t *testing.T) {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	r := New(client, "node-a", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	defer running.Wait()
	defer cancel()

	object := Object{Kind: "Instance", Namespace: namespace, Name: "cam-1a2b3c", UID: "u"}
	for range 50 {
		r.Warn(object, "cam-1a2b3c-0", "AllocationRefused", "the slot is in use elsewhere")
	}
	r.Warn(object, "cam-1a2b3c-1", "AllocationRefused", strings.Repeat("ü", 2000))

	of := client.Resource(eventResource).Namespace(namespace)
	var found []unstructured.Unstructured
	for deadline := time.Now().Add(10 * time.Second); len(found) < 2 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		list, err := of.List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.name=cam-1a2b3c,involvedObject.uid=u,reason=AllocationRefused,type=Warning",
		})
		if err != nil {
			t.Fatal(err)
		}
		found = list.Items
	}
	if len(found) != 2 {
		t.Fatalf("%d Events, want one per slot: %v", len(found), found)
	}
	for _, event := range found {
		host, _, _ := unstructured.NestedString(event.Object, "source", "host")
		count, _, _ := unstructured.NestedInt64(event.Object, "count")
		if host != "node-a" || count != 1 {
			t.Errorf("Event %v", event.Object)
		}
	}
}

// TestRepeatedEvent checks that a series updates its Event, and creates another one
// after the API server has deleted it.
func TestRepeatedEvent(t *testing.T) {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	r := New(client, "node-a", slog.New(slog.DiscardHandler))
	of := client.Resource(eventResource).Namespace(namespace)
	object := Object{Kind: "Configuration", Namespace: namespace, Name: "cam", UID: "u"}
	start := time.Now()
	s := &series{first: start}
	write := func(after time.Duration, count int) {
		t.Helper()
		s.count, s.last = count, start.Add(after)
		o := occurrence{key{object, "", "AllocationRefused"}, "refused", s.last}
		if err := r.write(t.Context(), o, s); err != nil {
			t.Fatal(err)
		}
	}
	count := func() (counts []int64) {
		t.Helper()
		list, err := of.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			n, _, _ := unstructured.NestedInt64(event.Object, "count")
			counts = append(counts, n)
		}
		return counts
	}
	write(0, 1)
	write(Interval, 7)
	if got := count(); !slices.Equal(got, []int64{7}) {
		t.Fatalf("Events with the counts %v, want one with 7", got)
	}
	if err := of.Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write(2*Interval, 9)
	if got := count(); !slices.Equal(got, []int64{1}) {
		t.Errorf("Events with the counts %v, want a new one", got)
	}
}
