package claims

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// TestSilence checks that a claim ends by the deadline if the API server does not
// respond, and that the outcome is unknown only if a patch was sent.
func TestSilence(t *testing.T) {
	for name, tc := range map[string]struct {
		known bool
		want  slots.Outcome
	}{
		"nothing known": {false, slots.Refused},
		"known":         {true, slots.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silent := roundTrip(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				})
				e := newExecutor(t, silent)
				ref := types.NamespacedName{Namespace: "default", Name: "cam"}
				if tc.known {
					e.store.Keep(known())
				}
				start := time.Now()
				got := e.Claim(t.Context(), ref, map[int]v0.Owner{0: {Node: "node-a"}})
				if took := time.Since(start); took > Deadline {
					t.Errorf("took %s", took)
				}
				if got.Outcome != tc.want || got.Record != nil || got.Err == nil {
					t.Errorf("got %+v", got)
				}
				if tc.known && got.Tried != 5 {
					t.Errorf("tried version %d, want 5", got.Tried)
				}
			})
		})
	}
}

// executorOf returns an executor whose API server answers as a function does.
func executorOf(t *testing.T, answer http.HandlerFunc) *Executor {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return New(client, &MemoryStore{}, "akri-agent.node-a")
}

// TestForbidden checks that a final refusal is not retried.
func TestForbidden(t *testing.T) {
	requests := 0
	e := executorOf(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	})
	ref := types.NamespacedName{Namespace: "default", Name: "cam"}
	e.store.Keep(known())
	got := e.Claim(context.Background(), ref, map[int]v0.Owner{0: {Node: "node-a"}})
	if got.Outcome != slots.Refused || got.Record != nil || requests != 1 {
		t.Errorf("got %+v after %d requests", got, requests)
	}
}

// TestInvalid checks that a change that the API server finds invalid is given up when
// the Instance turns out to be unchanged: four requests instead of sixteen.
func TestInvalid(t *testing.T) {
	var requests []string
	e := executorOf(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"apiVersion":"akri.sh/v0","kind":"Instance","metadata":{"name":"cam","namespace":"default",` +
				`"labels":{"node.akri.sh/node-a":""},` +
				`"resourceVersion":"6"}}`))
			return
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	})
	ref := types.NamespacedName{Namespace: "default", Name: "cam"}
	got := e.Claim(context.Background(), ref, map[int]v0.Owner{0: {Node: "node-a"}})
	if got.Outcome != slots.Refused || got.Record != nil {
		t.Errorf("got %+v", got)
	}
	if want := []string{"GET", "PATCH", "GET", "PATCH"}; !slices.Equal(requests, want) {
		t.Errorf("requests %v, want %v", requests, want)
	}
}

// TestReplaced checks that a claim does not change an Instance that was created after the
// one that the agent knows: it waits for the owners that the former one had.
func TestReplaced(t *testing.T) {
	var requests []string
	e := executorOf(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method)
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			_, _ = w.Write([]byte(`{"apiVersion":"akri.sh/v0","kind":"Instance","metadata":{"name":"cam","namespace":"default",` +
				`"labels":{"node.akri.sh/node-a":""},` +
				`"uid":"next","resourceVersion":"6"},"spec":{"capacity":1}}`))
			return
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `{"op":"test","path":"/metadata/uid","value":"former"}`) {
			t.Errorf("the patch %s does not test the UID", body)
		}
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	})
	former := known()
	former.UID = "former"
	e.store.Keep(former)
	got := e.Claim(t.Context(), types.NamespacedName{Namespace: "default", Name: "cam"}, map[int]v0.Owner{0: {Node: "node-a"}})
	if got.Outcome != slots.Refused || got.Gone || got.Record != nil {
		t.Errorf("got %+v", got)
	}
	if want := []string{"PATCH", "GET"}; !slices.Equal(requests, want) {
		t.Errorf("requests %v, want %v", requests, want)
	}
}

func known() *v0.Instance {
	return &v0.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "cam", ResourceVersion: "5", Labels: map[string]string{v0.NodeLabel("node-a"): ""},
	}}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newExecutor(t *testing.T, transport http.RoundTripper) *Executor {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://api.invalid", Transport: transport, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return New(client, &MemoryStore{}, "akri-agent.node-a")
}
