package claims

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/instances"
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
				if tc.known {
					e.store.Keep(known())
				}
				start := time.Now()
				got := e.Claim(t.Context(), cam, firstSlot)
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

// TestRefusals checks which requests a claim sends that the API server refuses for good. An
// Instance that was created after the one that the agent knows is not changed: its owners
// may not be written yet.
func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		known types.UID // of the Instance in the cache, if there is one
		code  int
		want  string
	}{
		"forbidden":                   {"u", http.StatusForbidden, "PATCH"},
		"invalid, which a read shows": {"", http.StatusUnprocessableEntity, "GET PATCH GET PATCH"},
		"replaced":                    {"former", http.StatusUnprocessableEntity, "PATCH GET"},
	} {
		t.Run(name, func(t *testing.T) {
			var requests []string
			e := newExecutor(t, roundTrip(func(r *http.Request) (*http.Response, error) {
				requests = append(requests, r.Method)
				code, body := http.StatusOK, `{"apiVersion":"akri.sh/v0","kind":"Instance","metadata":{"name":"cam","namespace":"default",`+
					`"labels":{"node.akri.sh/node-a":""},"uid":"u","resourceVersion":"6"},"spec":{"capacity":1}}`
				if r.Method == http.MethodPatch {
					code, body = tc.code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d}`, tc.code)
					if sent, _ := io.ReadAll(r.Body); !strings.Contains(string(sent), `"/metadata/uid","value":"`+cmp.Or(string(tc.known), "u")) {
						t.Errorf("the patch %s does not test the UID", sent)
					}
				}
				return &http.Response{
					StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
				}, nil
			}))
			if tc.known != "" {
				instance := known()
				instance.UID = tc.known
				e.store.Keep(instance)
			}
			got := e.Claim(t.Context(), cam, firstSlot)
			if got.Outcome != slots.Refused || got.Gone || got.Record != nil {
				t.Errorf("got %+v", got)
			}
			if sent := strings.Join(requests, " "); sent != tc.want {
				t.Errorf("requests %s, want %s", sent, tc.want)
			}
		})
	}
}

// What the tests claim.
var (
	cam       = types.NamespacedName{Namespace: "default", Name: "cam"}
	firstSlot = slots.Claim{Owners: map[int]v0.Owner{0: {Node: "node-a"}}}
)

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
	return New(client, NewStore(t, client, "node-a"), "akri-agent.node-a")
}

// NewStore returns the cache of a node's agent, whose watch does not run.
func NewStore(t *testing.T, client dynamic.Interface, node string) *instances.Store {
	t.Helper()
	store, err := instances.New(client, node, func(types.NamespacedName) {}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return store
}
