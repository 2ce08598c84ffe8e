package informers

import (
	"context"
	"io"
	"net/http"
	"strings"
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
)

// hostileKinds are kinds in which a client writes a large object each.
var hostileKinds = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "configmaps"}:         `{"apiVersion":"v1","kind":"ConfigMap"}`,
	{Version: "v1", Resource: "secrets"}:            `{"apiVersion":"v1","kind":"Secret"}`,
	{Version: "v1", Resource: "services"}:           `{"apiVersion":"v1","kind":"Service","spec":{"ports":[{"port":80}]}}`,
	{Version: "v1", Resource: "serviceaccounts"}:    `{"apiVersion":"v1","kind":"ServiceAccount"}`,
	{Group: rbac, Version: "v1", Resource: "roles"}: `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role"}`,
}

const rbac = "rbac.authorization.k8s.io"

// A controller that starts while there is a large object of each kind reads them one by
// one: decoded, each takes some 20 MiB, and it would find them at each start.
func TestMemoryOfAStart(t *testing.T) {
	config := apitest.Start(t)
	api, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	namespace := apitest.Namespace(t, config)
	for resource, text := range hostileKinds {
		createLarge(t, api.Resource(resource).Namespace(namespace), text)
	}
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	before := apitest.LiveHeap()
	for mode, direct := range map[string]bool{"as watches": true, "as lists": false} {
		t.Run(mode, func(t *testing.T) {
			most := peakOfStart(t, config, transport, namespace, direct)
			const limit = 60 << 20 // one object, and the texts of all others
			if took := most - before; took > limit {
				t.Errorf("%d MiB, want at most %d", took>>20, limit>>20)
			} else {
				t.Logf("%d MiB", took>>20)
			}
		})
	}
}

// createLarge creates an object of the controller's with more than a megabyte of managed
// fields.
func createLarge(t *testing.T, api dynamic.ResourceInterface, text string) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	object.SetName("x")
	object.SetLabels(map[string]string{v0.LabelManagedBy: v0.ManagedBy, v0.LabelInstance: "x"})
	created, err := api.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // all namespaces are watched
		if err := api.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	forged := appliedAt(time.Now(), variablesIn(45_000, `\"name\":\"E%05d\"`))
	forged.APIVersion = object.GetAPIVersion()
	created.SetManagedFields([]metav1.ManagedFieldsEntry{forged})
	stored, err := api.Update(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := stored.MarshalJSON(); err != nil || len(text) < 1<<20 || !Trim(stored).ours {
		t.Fatalf("stored as %d bytes, %v, ours %v, %.300s", len(text), err, Trim(stored).ours, text)
	}
}

// peakOfStart returns the live heap at its largest until all kinds have synced.
func peakOfStart(t *testing.T, config *rest.Config, transport *http.Client, namespace string, watchList bool) (most int) {
	t.Helper()
	intercepted := &http.Client{Transport: apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
		if !watchList && request.URL.Query().Get("sendInitialEvents") == "true" {
			const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`
			return &http.Response{
				StatusCode: http.StatusUnprocessableEntity, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(refusal)), Request: request,
			}, nil
		}
		return transport.Transport.RoundTrip(request)
	})}
	informers, err := newInformers(config, intercepted, func(ownership.Parent) {}, defaultTiming())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- informers.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	name := types.NamespacedName{Namespace: namespace, Name: "x"}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for synced := false; !synced; most = max(most, apitest.LiveHeap()) {
		<-tick.C
		if ctx.Err() != nil {
			t.Fatalf("not all kinds have synced: %+v", informers.Report())
		}
		synced = true
		for resource := range hostileKinds {
			informers.Ensure(resource, ownership.Parent{NamespacedName: name}, name, nil)
			_, found := informers.Get(resource, name)
			synced = synced && found
		}
	}
	return most
}
