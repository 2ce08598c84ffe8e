package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
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

// await waits until there are n Events, and returns them.
func (f *fixture) await(n int) []unstructured.Unstructured {
	f.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		list, err := f.events.List(f.t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.uid=u,reason=AllocationRefused,type=Warning",
		})
		if err != nil {
			f.t.Fatal(err)
		}
		if len(list.Items) == n {
			return list.Items
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("%d Events, want %d", len(list.Items), n)
		}
	}
}

// TestEvents checks that an API server accepts the Events, and that a repeated one is
// written once.
func TestEvents(t *testing.T) {
	f := newFixture(t)
	f.run()
	f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	f.await(1)
	for range 49 {
		f.warn("cam-1a2b3c", "cam-1a2b3c-0", "the slot is in use elsewhere")
	}
	f.warn("cam-1a2b3c", "cam-1a2b3c-1", strings.Repeat("ü", 2000))
	for _, event := range f.await(2) {
		host, _, _ := unstructured.NestedString(event.Object, "source", "host")
		count, _, _ := unstructured.NestedInt64(event.Object, "count")
		if host != "node-a" || count != 1 {
			t.Errorf("Event %v", event.Object)
		}
	}
	if n := f.log.emitted.Load(); n != 2 {
		t.Errorf("the log has %d Events, want one per slot", n)
	}
}

// The machine reports a conflict once. Of many at the same time, all are logged at once,
// and none is lost.
func TestABurstOfEvents(t *testing.T) {
	const n = 30
	f := newFixture(t)
	f.recorder.limit = rate.NewLimiter(100, 5)
	for i := range n {
		f.warn(fmt.Sprint("cam-", i), "0", "conflict")
	}
	if got := f.log.emitted.Load(); got != n {
		t.Errorf("the log has %d of %d Events before they are written", got, n)
	}
	f.run()
	f.await(n)
}

// An Event that the API server could not take, because it did not answer, is written when
// it answers again: that claims cannot be written is often for the same reason.
func TestEventsDuringAnOutage(t *testing.T) {
	f := newFixture(t)
	f.down.Store(true)
	f.run()
	f.warn("cam-1", "0", "the API server does not answer")
	f.warn("cam-2", "0", "the API server does not answer")
	for deadline := time.Now().Add(10 * time.Second); f.first() != "cam-2"; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no attempt")
		}
	}
	f.warn("cam-1", "0", "the API server does not answer")
	f.down.Store(false)
	for _, event := range f.await(2) {
		count, _, _ := unstructured.NestedInt64(event.Object, "count")
		name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name")
		if want := map[string]int64{"cam-1": 2, "cam-2": 1}[name]; count != want {
			t.Errorf("%s has %d occurrences, want %d", name, count, want)
		}
	}
	if got := f.log.emitted.Load(); got != 2 {
		t.Errorf("the log has %d Events, want 2", got)
	}
}

// first returns the Instance of the Event to write next.
func (f *fixture) first() string {
	s, _ := f.recorder.next()
	return s.object.Name
}

// A write whose response was lost is not repeated as another Event, and one that the API
// server refuses is not repeated at all.
func TestRepeatedWrites(t *testing.T) {
	f := newFixture(t)
	f.warn("cam-1", "0", "x")
	s, _ := f.recorder.next()
	for range 2 {
		if _, err := f.recorder.write(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	f.await(1)
	f.recorder.Warn(Object{Kind: "Instance", Namespace: "no such namespace", Name: "x"}, "", "AllocationRefused", "x")
	for range 2 {
		if !f.recorder.writeNext(t.Context()) {
			t.Error("a write that was refused, or that is done, is to be repeated")
		}
	}
	if _, found := f.recorder.next(); found {
		t.Error("a write is still pending")
	}
}

// TestRepeatedEvent checks that a series updates its Event, and creates another one
// after the API server has deleted it.
func TestRepeatedEvent(t *testing.T) {
	f := newFixture(t)
	start := time.Now()
	k := key{Object{Kind: "Configuration", Namespace: f.namespace, Name: "cam", UID: "u"}, "", "AllocationRefused"}
	s := series{key: k, message: "refused", first: start}
	write := func(after time.Duration, count int) {
		t.Helper()
		s.count, s.last, s.due = count, start.Add(after), start.Add(after)
		var err error
		if s, err = f.recorder.write(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	count := func() int64 {
		t.Helper()
		n, _, _ := unstructured.NestedInt64(f.await(1)[0].Object, "count")
		return n
	}
	write(0, 1)
	write(Interval, 7)
	if got := count(); got != 7 {
		t.Fatalf("the Event has the count %d, want 7", got)
	}
	if err := f.events.Delete(t.Context(), s.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write(2*Interval, 9)
	if got := count(); got != 1 {
		t.Errorf("the Event has the count %d, want a new one", got)
	}
}
