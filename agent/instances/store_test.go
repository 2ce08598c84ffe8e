package instances

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

// fixture is a running store and the events it has sent.
type fixture struct {
	t         *testing.T
	store     *Store
	instances dynamic.ResourceInterface
	name      types.NamespacedName
	events    chan string
	touched   atomic.Int32 // how often the Configuration was touched
}

// newFixture runs a store. The wrappers are around its requests, not around the test's.
func newFixture(t *testing.T, wrappers ...transport.WrapperFunc) *fixture {
	t.Helper()
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	wrapped := rest.CopyConfig(config)
	for _, wrapper := range wrappers {
		wrapped.Wrap(wrapper)
	}
	own, err := dynamic.NewForConfig(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		t: t, instances: client.Resource(v0.InstanceResource).Namespace(namespace),
		name: types.NamespacedName{Namespace: namespace, Name: "cam-1"}, events: make(chan string, 100),
	}
	touched := func(configuration types.NamespacedName) {
		if configuration.Namespace == namespace {
			f.touched.Add(1)
		}
	}
	store, err := New(own, "node-a", touched, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.store = store
	report := func(event Event, instance *v0.Instance) {
		if instance.Namespace == namespace {
			f.events <- map[Event]string{Changed: "changed", Left: "left", Deleted: "deleted"}[event]
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { store.Run(ctx, report) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	if !cache.WaitForCacheSync(ctx.Done(), store.HasSynced) {
		t.Fatal("not synced")
	}
	return f
}

func (f *fixture) create() {
	f.t.Helper()
	_, err := f.instances.Create(f.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Instance",
		"metadata": map[string]any{"name": f.name.Name, "labels": map[string]any{v0.NodeLabel("node-a"): ""}},
		"spec":     map[string]any{"configurationName": "cam", "cdiName": "akri.sh/cam=1", "capacity": int64(1), "shared": true},
	}}, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) patch(patch string) *v0.Instance {
	f.t.Helper()
	object, err := f.instances.Patch(f.t.Context(), f.name.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	instance, err := Read(object)
	if err != nil {
		f.t.Fatal(err)
	}
	return instance
}

func (f *fixture) remove() {
	f.t.Helper()
	if err := f.instances.Delete(f.t.Context(), f.name.Name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) want(event string) {
	f.t.Helper()
	select {
	case got := <-f.events:
		if got != event {
			f.t.Fatalf("the event is %q, want %q", got, event)
		}
	case <-time.After(10 * time.Second):
		f.t.Fatalf("no event, want %q", event)
	}
}

func TestEvents(t *testing.T) {
	f := newFixture(t)
	label := v0.NodeLabel("node-a")
	f.create()
	f.want("changed")
	f.patch(`{"metadata":{"labels":{"` + label + `":null}}}`)
	f.want("left")
	f.patch(`{"metadata":{"labels":{"` + label + `":""}}}`)
	f.want("changed")
	f.remove()
	f.want("deleted")
	if f.store.Get(f.name) != nil {
		t.Error("the store still has the deleted Instance")
	}
}

// The controller writes the status of Instances, and others their own metadata. That
// concerns no agent.
func TestTheStatusIsNoEvent(t *testing.T) {
	f := newFixture(t)
	f.create()
	f.want("changed")
	status := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"",` +
		`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	if _, err := f.instances.Patch(t.Context(), f.name.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	f.patch(`{"metadata":{"labels":{"x":"1"},"annotations":{"x":"1"},"finalizers":["example.com/x"]}}`)
	f.patch(`{"spec":{"nodes":["node-a"]}}`)
	f.want("changed")
	before := f.touched.Load()
	claimed := f.patch(`{"spec":{"deviceUsage":{"cam-1-0":"node-b"}}}`)
	f.want("changed")
	if f.touched.Load() != before {
		t.Error("a claim is a reason to publish the devices of the Configuration again")
	}
	if got := f.store.Get(f.name); got.ResourceVersion != claimed.ResourceVersion {
		t.Errorf("the store has version %s, want %s: the status or others' metadata was an event", got.ResourceVersion, claimed.ResourceVersion)
	}
	for _, edit := range []string{
		`{"metadata":{"labels":{"akri.sh/configuration":"x"}}}`, `{"metadata":{"annotations":{"akri.sh/device-id":"x"}}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`,
	} {
		f.patch(edit)
		f.want("changed")
	}
}

func TestReadYourWrites(t *testing.T) {
	f := newFixture(t)
	f.create()
	f.want("changed")
	written := f.patch(`{"spec":{"capacity":7}}`)
	f.store.Keep(written)
	if got := f.store.Get(f.name); got.Spec.Capacity != 7 {
		t.Errorf("capacity is %d right after the write, want 7", got.Spec.Capacity)
	}
	f.want("changed")
	older := written.DeepCopy()
	older.ResourceVersion, older.Spec.Capacity = "1", 1
	f.store.Keep(older)
	if got := f.store.Get(f.name); got.Spec.Capacity != 7 {
		t.Errorf("capacity is %d after an older answer, want 7", got.Spec.Capacity)
	}
	if got := f.store.Of(types.NamespacedName{Namespace: f.name.Namespace, Name: "cam"}); len(got) != 1 || got[0].Spec.Capacity != 7 {
		t.Errorf("the Configuration's Instances are %v", got)
	}
	left := written.DeepCopy()
	left.Name, left.Labels = "other", nil
	f.store.Keep(left)
	if f.store.Get(NameOf(left)) != nil {
		t.Error("the store keeps an Instance of other nodes")
	}
}

// A node that leaves an Instance no longer sees it, also before the watch shows that.
func TestReadYourDeparture(t *testing.T) {
	f := newFixture(t)
	label := v0.NodeLabel("node-a")
	f.create()
	f.want("changed")
	f.store.Keep(f.patch(`{"spec":{"capacity":7}}`))
	left := f.patch(`{"metadata":{"labels":{"` + label + `":null}}}`)
	f.store.Keep(left)
	if f.store.Get(f.name) != nil || len(f.store.Of(configurationOf(left))) != 0 {
		t.Error("the store has the Instance after the node has left it")
	}
	joined := f.patch(`{"metadata":{"labels":{"` + label + `":""}}}`)
	f.store.Keep(joined)
	if got := f.store.Get(f.name); got == nil || got.ResourceVersion != joined.ResourceVersion {
		t.Errorf("the store has %v after the node has joined again", got)
	}
	f.store.Keep(f.patch(`{"metadata":{"labels":{"` + label + `":null}}}`))
	f.eventually("the answer is dropped when the watch shows the departure", func() bool { return f.answers() == 0 })
}

func (f *fixture) answers() int {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	return len(f.store.answers)
}

func (f *fixture) eventually(what string, holds func() bool) {
	f.t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatal("never: " + what)
		}
	}
}

// What the agent does not need of an Instance takes no memory.
func TestRead(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "cam", "annotations": map[string]any{"example.com/a": "x"}, "managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
		"spec":   map[string]any{"configurationName": "cam"},
		"status": map[string]any{"resources": []any{map[string]any{"version": "v1", "kind": "Pod", "name": "p"}}},
	}}
	read, err := Read(object)
	if err != nil {
		t.Fatal(err)
	}
	if read.Name != "cam" || read.Spec.ConfigurationName != "cam" {
		t.Errorf("read %+v", read)
	}
	if len(read.ManagedFields)+len(read.Annotations)+len(read.Status.Resources) > 0 {
		t.Errorf("it keeps %+v", read)
	}
}
