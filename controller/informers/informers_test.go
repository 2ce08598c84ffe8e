package informers

import (
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/templating"
	"akri.sh/akri/templating/readywhen"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// watching holds running Informers and records their notifications.
type watching struct {
	*Informers
	t         *testing.T
	api       dynamic.ResourceInterface
	namespace string

	// requests counts those of the Informers, and lists those of them that ask for all objects;
	// serve, if set, responds to them.
	requests atomic.Int64
	lists    atomic.Int64
	serve    atomic.Pointer[serverFunc]

	mu       sync.Mutex
	notified []ownership.Parent
}

func watchAll(t *testing.T) *watching { return watchWith(t, pace) }

func watchWith(t *testing.T, pace time.Duration) *watching {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &watching{t: t, namespace: apitest.Namespace(t, config)}
	w.api = client.Resource(configMaps).Namespace(w.namespace)
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	direct := transport.Transport
	transport.Transport = apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		w.requests.Add(1)
		if query := request.URL.Query(); query.Get("sendInitialEvents") == "true" || query.Get("watch") == "" {
			w.lists.Add(1)
		}
		if serve := w.serve.Load(); serve != nil {
			return (*serve)(request)
		}
		return direct.RoundTrip(request)
	})
	w.Informers, err = newInformers(t.Context(), config, transport, func(parent ownership.Parent) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notified = append(w.notified, parent)
	}, pace)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// serverFunc responds to a request.
type serverFunc func(request *http.Request) (*http.Response, error)

func (w *watching) parent(name string) ownership.Parent {
	return ownership.Parent{Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: name}}
}

// times returns how often a parent was notified.
func (w *watching) times(parent ownership.Parent) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := 0
	for _, notified := range w.notified {
		if notified == parent {
			count++
		}
	}
	return count
}

// synced asks for a parent's ConfigMap until the watch has synced. A parent that asks
// before that is notified exactly once.
func (w *watching) synced(parent ownership.Parent) {
	w.t.Helper()
	notified := w.times(parent)
	if !w.Ensure(configMaps, parent).Synced {
		w.eventually("the first sync", func() bool { return w.times(parent) == notified+1 })
	}
}

// applied applies a parent's ConfigMap, waits until the watch has delivered it, and
// only then notes the answer. In the other order, the watch notifies the parent or not,
// depending on which of the two comes first.
func (w *watching) applied(parent ownership.Parent, condition *readywhen.Condition) {
	w.t.Helper()
	notified := w.times(parent)
	object := w.apply(parent.Name, "1")
	w.eventually("the watch delivers "+parent.Name, func() bool { return w.times(parent) == notified+1 })
	w.RecordApplied(configMaps, object, condition)
}

func (w *watching) eventually(what string, holds func() bool) {
	w.t.Helper()
	apitest.EventuallyTrue(w.t, what, holds)
}

// apply applies a ConfigMap as the controller does.
func (w *watching) apply(name, value string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name":   name,
			"labels": map[string]any{v0.LabelManagedBy: v0.ManagedBy, v0.LabelConfiguration: "cfg", v0.LabelInstance: name},
		},
		"data": map[string]any{"k": value},
	}}
	applied, err := w.api.Apply(w.t.Context(), name, object, metav1.ApplyOptions{FieldManager: v0.FieldManagerController, Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return applied
}

func (w *watching) get(name string) *unstructured.Unstructured {
	w.t.Helper()
	object, err := w.api.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

func (w *watching) patch(name, patch string) {
	w.t.Helper()
	if _, err := w.api.Patch(
		w.t.Context(),
		name,
		types.MergePatchType,
		[]byte(patch),
		metav1.PatchOptions{FieldManager: "another"},
	); err != nil {
		w.t.Fatal(err)
	}
}

func TestParentsAreNotifiedOfTheirObjects(t *testing.T) {
	w := watchAll(t)
	a, b := w.parent("a"), w.parent("b")
	w.synced(a)
	if state := w.Ensure(configMaps, a); !state.Synced || state.Err != nil {
		t.Fatalf("state %+v", state)
	}

	w.applied(a, nil)
	w.applied(b, nil)
	notifiedA, notifiedB := w.times(a), w.times(b)

	// Changes of fields that the controller does not own notify no parent. The later
	// change of b shows that they have been seen.
	w.patch("a", `{"data":{"theirs":"x"},"metadata":{"annotations":{"theirs":"x"}}}`)
	w.patch("b", `{"data":{"k":"2"}}`)
	w.eventually("a changed field of ours", func() bool { return w.times(b) == notifiedB+1 })
	if n := w.times(a); n != notifiedA {
		t.Errorf("a was notified %d times of changes to another manager's fields", n-notifiedA)
	}
	object, found := w.Get(configMaps, types.NamespacedName{Namespace: w.namespace, Name: "a"})
	if !found || object.Parent != a || !object.Ready {
		t.Errorf("a is seen as %+v", object)
	}

	// Without the label it disappears from the watch.
	w.patch("a", `{"metadata":{"labels":{"`+v0.LabelManagedBy+`":null}}}`)
	w.eventually("a removed label", func() bool { return w.times(a) == notifiedA+1 })
	if err := w.api.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("a deletion", func() bool { return w.times(b) == notifiedB+2 })
}

// The digest of the controller's fields changes if another manager changes one of
// them, or with an apply that changes the object, and only then.
func TestFieldsDigest(t *testing.T) {
	w := watchAll(t)
	before := fieldsOf(w.apply("a", "1"))
	if before == "" {
		t.Fatal("no digest")
	}
	digest := func() string {
		object, err := w.api.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fieldsOf(object)
	}
	same := map[string]func(){
		"applied again":         func() { w.apply("a", "1") },
		"same value by another": func() { w.patch("a", `{"data":{"k":"1"}}`) },
		"another's field":       func() { w.patch("a", `{"data":{"theirs":"x"}}`) },
		"another's label":       func() { w.patch("a", `{"metadata":{"labels":{"theirs":"x"}}}`) },
	}
	for name, change := range same {
		if change(); digest() != before {
			t.Errorf("%s: the digest changed", name)
		}
	}
	other := map[string]string{
		"another value":         `{"data":{"k":"2"}}`,
		"a value removed":       `{"data":{"k":null}}`,
		"a label removed":       `{"metadata":{"labels":{"` + v0.LabelInstance + `":null}}}`,
		"managed fields erased": `{"metadata":{"managedFields":[{}]}}`,
	}
	for name, patch := range other {
		if w.patch("a", patch); digest() == before {
			t.Errorf("%s: the digest is the same", name)
		}
		before = fieldsOf(w.apply("a", "1")) // the repair has another time
		if digest() != before {
			t.Errorf("%s: the digest is not that of the repair", name)
		}
	}
}

// The watch that begins with a list ends before long. The next one goes on where it has ended:
// nothing is listed again.
func TestObjectsAreListedOnce(t *testing.T) {
	w := watchWith(t, quick)
	names := []string{"configmaps", "endpoints", "pods", "podtemplates", "replicationcontrollers", "secrets", "serviceaccounts", "services"}
	for _, name := range names {
		w.Ensure(schema.GroupVersionResource{Version: "v1", Resource: name}, w.parent("a"))
	}
	want := int64(len(names))
	w.eventually("all watches have begun again, twice", func() bool { return w.requests.Load() >= 3*want })
	if got := w.lists.Load(); got != want {
		t.Errorf("%d lists of %d resources", got, want)
	}
}

// An informer without users stops; one in use does not.
func TestUnusedInformersEnd(t *testing.T) {
	w := watchAll(t)
	services := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	user := types.NamespacedName{Namespace: w.namespace, Name: "cfg"}
	w.SetResources(user, []schema.GroupVersionResource{configMaps, services})
	w.SetResources(user, []schema.GroupVersionResource{configMaps})
	for range 2 {
		w.stopUnused()
	}
	w.Informers.mu.Lock()
	defer w.Informers.mu.Unlock()
	if w.watched[configMaps] == nil || w.watched[services] != nil {
		t.Errorf("watched: %v, want ConfigMaps only", fmt.Sprint(w.watched))
	}
}

// A resource that the API server does not serve is reported, not waited for.
func TestUnknownResource(t *testing.T) {
	w := watchAll(t)
	unknown := schema.GroupVersionResource{Group: "nowhere.akri.sh", Version: "v1", Resource: "nothings"}
	a := w.parent("a")
	w.Ensure(unknown, a)
	w.eventually("a notification of the failure", func() bool { return w.times(a) > 0 })
	if state := w.Ensure(unknown, a); state.Synced || state.Err == nil {
		t.Errorf("state %+v, want an error", state)
	}
}
