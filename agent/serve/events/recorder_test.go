package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// fixture is a recorder that runs, in a namespace of an API server.
type fixture struct {
	t         *testing.T
	recorder  *Recorder
	namespace string
	log       *lines
	events    dynamic.ResourceInterface
	down      atomic.Bool // requests of the recorder fail
}

// lines counts the lines of a log.
type lines struct {
	slog.Handler
	emitted atomic.Int32
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "Emitting an Event" {
		l.emitted.Add(1)
	}
	return nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	config := rest.CopyConfig(apitest.Start(t))
	f := &fixture{t: t, namespace: apitest.Namespace(t, config), log: &lines{Handler: slog.DiscardHandler}}
	plain, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f.events = plain.Resource(eventResource).Namespace(f.namespace)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if f.down.Load() {
				return nil, errors.New("connection refused")
			}
			return next.RoundTrip(r)
		})
	})
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f.recorder = New(client, "node-a", slog.New(f.log))
	return f
}

// run runs the recorder until the test ends.
func (f *fixture) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.recorder.Run(ctx) })
	f.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (f *fixture) warn(instance, subject, message string) {
	object := Object{Kind: "Instance", Namespace: f.namespace, Name: instance, UID: "u"}
	f.recorder.Warn(object, subject, "AllocationRefused", message)
}

// later makes what was written so much older.
func (f *fixture) later(than time.Duration) {
	f.recorder.mu.Lock()
	defer f.recorder.mu.Unlock()
	for _, s := range f.recorder.series {
		s.settled = s.settled.Add(-than)
	}
}

// pending returns how many series are to be written.
func (f *fixture) pending() (n int) {
	f.recorder.mu.Lock()
	defer f.recorder.mu.Unlock()
	for _, s := range f.recorder.series {
		if !s.due.IsZero() {
			n++
		}
	}
	return n
}

// await waits until there are Events with these counts, in ascending order, and returns them.
func (f *fixture) await(want ...int64) []unstructured.Unstructured {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := f.events.List(f.t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.uid=u,reason=AllocationRefused,type=Warning",
		})
		if err != nil {
			f.t.Fatal(err)
		}
		var counts []int64
		for _, event := range list.Items {
			count, _, _ := unstructured.NestedInt64(event.Object, "count")
			counts = append(counts, count)
		}
		slices.Sort(counts)
		if slices.Equal(counts, want) {
			return list.Items
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("Events with the counts %v, want %v", counts, want)
		}
	}
}

// An Event is written once in an interval, and counts. It is updated or, if it has expired,
// created again.
func TestEvents(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	f.await(1)
	for range 49 {
		f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	}
	f.warn("cam-1a2b3c", "cam-1a2b3c-1", strings.Repeat("ü", 2000))
	for _, event := range f.await(1, 1) {
		if host, _, _ := unstructured.NestedString(event.Object, "source", "host"); host != "node-a" {
			t.Errorf("Event %v", event.Object)
		}
	}
	if n := f.log.emitted.Load(); n != 2 {
		t.Errorf("the log has %d Events, want one per slot", n)
	}
	f.later(writeInterval)
	f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	for _, event := range f.await(1, 51) { // which expire
		if err := f.events.Delete(t.Context(), event.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	f.later(writeInterval)
	f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	f.await(52)
}

// Of many Events at the same time, all are logged at once, and none is lost, also if the API
// server does not answer: that claims cannot be written is often for the same reason. What it
// refuses is not written again.
func TestEventsDuringAnOutage(t *testing.T) {
	const n = 30
	f := newFixture(t)
	f.recorder.limit = rate.NewLimiter(100, 5)
	f.recorder.pending = workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](time.Millisecond, 50*time.Millisecond))
	f.down.Store(true)
	counts := make([]int64, n)
	for i := range n {
		f.warn(fmt.Sprint("cam-", i), "0", "conflict")
		counts[i] = 2
	}
	if got := f.log.emitted.Load(); got != n {
		t.Errorf("the log has %d of %d Events before they are written", got, n)
	}
	f.run()
	k := key{Object{Kind: "Instance", Namespace: f.namespace, Name: "cam-0", UID: "u"}, "0", "AllocationRefused"}
	for deadline := time.Now().Add(10 * time.Second); f.recorder.pending.NumRequeues(k) < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no second attempt")
		}
	}
	for i := range n {
		f.warn(fmt.Sprint("cam-", i), "0", "conflict")
	}
	f.recorder.Warn(Object{Kind: "Instance", Namespace: "no such namespace", Name: "x"}, "", "AllocationRefused", "x")
	f.down.Store(false)
	f.await(counts...)
	if got := f.log.emitted.Load(); got != n+1 {
		t.Errorf("the log has %d Events, want %d", got, n+1)
	}
	for deadline := time.Now().Add(10 * time.Second); f.pending() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a write that was refused, or that is done, is still pending")
		}
	}
}

// The memory is bounded, and series that have ended leave their place to others.
func TestSeriesAreBounded(t *testing.T) {
	r, now := New(dynamic.NewForConfigOrDie(&rest.Config{}), "node-a", slog.New(slog.DiscardHandler)), time.Unix(1e9, 0)
	t.Cleanup(r.pending.ShutDown)
	logged := 0
	for i := range 2 * maxSeries {
		if due, full := r.count(key{subject: fmt.Sprint(i)}, "", now); full {
			logged++
		} else if due != (i < maxSeries) {
			t.Fatalf("occurrence %d: due is %v", i, due)
		}
	}
	if len(r.series) != maxSeries || logged != 1 {
		t.Errorf("%d series, and %d lines of the log, want %d and 1", len(r.series), logged, maxSeries)
	}
	for _, s := range r.series {
		s.due = time.Time{}
	}
	if due, _ := r.count(key{subject: "late"}, "", now.Add(writeInterval)); !due || len(r.series) != 1 {
		t.Errorf("series that have ended use up the bound: %d", len(r.series))
	}
}
