package apply

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/objects"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/plan"
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

var (
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

var parent = ownership.Parent{UID: "11111111-1111-1111-1111-111111111111"}

func configMap(content map[string]any) *plan.Desired {
	return &plan.Desired{Kind: configMapKind, Resource: configMaps, Content: content}
}

type world struct {
	*Client
	t         *testing.T
	config    *rest.Config
	dynamic   dynamic.Interface
	api       dynamic.ResourceInterface
	namespace string
}

func newWorld(t *testing.T) *world {
	config := apitest.Start(t)
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	return &world{
		Client: client, t: t, config: config, dynamic: api,
		api: api.Resource(configMaps).Namespace(namespace), namespace: namespace,
	}
}

// beforeRequest calls a function before each request that matches is sent.
type beforeRequest struct {
	http.RoundTripper
	matches func(*http.Request) bool
	call    func()
}

func (b beforeRequest) RoundTrip(request *http.Request) (*http.Response, error) {
	if b.matches(request) {
		b.call()
	}
	return b.RoundTripper.RoundTrip(request)
}

// interrupted returns a client that calls a function before each request that matches.
func (w *world) interrupted(matches func(*http.Request) bool, call func()) *Client {
	w.t.Helper()
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return beforeRequest{next, matches, call} })
	client, err := NewClient(config, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

func (w *world) content(name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": w.namespace, "ownerReferences": []any{map[string]any{
			"apiVersion": "akri.sh/v0", "kind": "Instance", "name": "i", "uid": string(parent.UID), "controller": true,
		}}},
		"data": map[string]any{"k": value},
	}
}

func (w *world) get(name string) *unstructured.Unstructured {
	w.t.Helper()
	object, err := w.api.Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return object
}

// uidOf returns the UID of an object.
func uidOf(t *testing.T, answer objects.Answer) (uid types.UID) {
	t.Helper()
	if err := answer.Read(func(object *unstructured.Unstructured) { uid = object.GetUID() }); err != nil {
		t.Error(err)
	}
	return uid
}

func versionOf(t *testing.T, answer objects.Answer) (version string) {
	t.Helper()
	if err := answer.Read(func(object *unstructured.Unstructured) { version = object.GetResourceVersion() }); err != nil {
		t.Error(err)
	}
	return version
}

func reason(err error) string {
	if answer, ok := errors.AsType[*problem.Error](err); ok {
		return answer.Reason
	}
	return ""
}

// One request creates an object, and never touches an existing one, not even if no
// field conflicts.
func TestCreateNeverTouchesWhatExists(t *testing.T) {
	w := newWorld(t)
	theirs := w.content("taken", "theirs")
	delete(theirs, "data")
	delete(theirs["metadata"].(map[string]any), "ownerReferences")
	if _, err := w.api.Create(t.Context(), &unstructured.Unstructured{Object: theirs}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.get("taken").GetResourceVersion()
	_, err := w.Create(t.Context(), configMap(w.content("taken", "ours")), ownership.Claim{Parent: parent})
	if reason(err) != v0.ReasonConflict {
		t.Errorf("got %v, want a Conflict", err)
	}
	if after := w.get("taken").GetResourceVersion(); after != before {
		t.Error("another owner's object was written")
	}
	// With on-conflict: adopt it is adopted.
	if _, err := w.Create(
		t.Context(),
		configMap(w.content("taken", "ours")),
		ownership.Claim{Parent: parent, Adopt: ownership.AdoptAny},
	); err != nil {
		t.Error(err)
	}
}

// An object that is deleted between the two requests is no failure: it is created again
// with the next pass.
func TestCreateOfWhatIsDeleted(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Create(t.Context(), configMap(w.content("going", "v")), ownership.Claim{Parent: parent}); err != nil {
		t.Fatal(err)
	}
	api := w.interrupted(func(r *http.Request) bool { return r.Method == http.MethodGet }, func() {
		if err := w.api.Delete(t.Context(), "going", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if _, err := api.Create(t.Context(), configMap(w.content("going", "v")), ownership.Claim{Parent: parent}); !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want %v", err, ErrChanged)
	}
}

func TestCreateOfTheSameObjectByMany(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	uids := map[types.UID]bool{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			object, err := w.Create(t.Context(), configMap(w.content("new", "v")), ownership.Claim{Parent: parent})
			if err != nil {
				t.Error(err) // one creates it, the others find that it is the parent's
				return
			}
			mu.Lock()
			defer mu.Unlock()
			uids[uidOf(t, object)] = true
		})
	}
	all.Wait()
	if len(uids) != 1 {
		t.Errorf("objects with %d UIDs were returned", len(uids))
	}
	for _, entry := range w.get("new").GetManagedFields() {
		if entry.Manager != v0.FieldManagerController || entry.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("fields are owned by %s, %s", entry.Manager, entry.Operation)
		}
	}
}

// An object that was replaced since it was read is not written.
func TestUpdateAndDeleteNameOneObject(t *testing.T) {
	w := newWorld(t)
	object, err := w.Create(t.Context(), configMap(w.content("x", "1")), ownership.Claim{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	const other types.UID = "22222222-2222-2222-2222-222222222222"
	if _, err := w.Update(t.Context(), configMap(w.content("x", "2")), other, ""); !errors.Is(err, ErrChanged) {
		t.Errorf("an update of another UID: %v", err)
	}
	if _, err := w.Update(t.Context(), configMap(w.content("absent", "2")), other, ""); !errors.Is(err, ErrChanged) {
		t.Errorf("an update of a missing object: %v", err)
	}
	if _, err := w.Update(t.Context(), configMap(w.content("x", "2")), uidOf(t, object), ""); err != nil {
		t.Error(err)
	}
	name := types.NamespacedName{Namespace: w.namespace, Name: "x"}
	now, created := w.get("x"), versionOf(t, object)
	for reason, err := range map[string]error{
		"another UID":        w.Delete(t.Context(), configMaps, name, other, now.GetResourceVersion()),
		"an earlier version": w.Delete(t.Context(), configMaps, name, now.GetUID(), created),
	} {
		if !errors.Is(err, ErrChanged) {
			t.Errorf("a deletion of %s: %v", reason, err)
		}
	}
	if w.get("x").GetUID() != uidOf(t, object) {
		t.Error("another object was deleted")
	}
	for range 2 { // the second finds nothing, which is no error
		if err := w.Delete(t.Context(), configMaps, name, now.GetUID(), now.GetResourceVersion()); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	w := newWorld(t)
	unknown := schema.GroupVersionKind{Group: "nowhere.akri.sh", Version: "v1", Kind: "Nothing"}
	content := w.content("x", "1")
	content["apiVersion"], content["kind"] = "nowhere.akri.sh/v1", "Nothing"
	_, err := w.Create(
		t.Context(),
		&plan.Desired{Kind: unknown, Resource: unknown.GroupVersion().WithResource("nothings"), Content: content},
		ownership.Claim{Parent: parent},
	)
	if reason(err) != v0.ReasonKindUnavailable {
		t.Errorf("an unknown kind: %v", err)
	}
	invalid := w.content("Not A Name", "1")
	if _, err := w.Create(t.Context(), configMap(invalid), ownership.Claim{Parent: parent}); reason(err) != v0.ReasonApplyFailed ||
		!strings.Contains(err.Error(), "Not A Name") { // what the API server says is repeated
		t.Errorf("an invalid object: %v", err)
	}
	fixed := w.content("fixed", "1")
	fixed["immutable"] = true
	object, err := w.Create(t.Context(), configMap(fixed), ownership.Claim{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	fixed["data"] = map[string]any{"k": "2"}
	if _, err := w.Update(t.Context(), configMap(fixed), uidOf(t, object), ""); reason(err) != v0.ReasonImmutable {
		t.Errorf("a change of an immutable field: %v", err)
	}
}
