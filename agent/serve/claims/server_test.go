package claims_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) { os.Exit(apitest.Run(m)) }

func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// executor returns the executor of a node.
func executor(t *testing.T, c dynamic.Interface, node string) *claims.Executor {
	t.Helper()
	return claims.New(c, claims.NewStore(t, c, node), "akri-agent."+node)
}

// instance creates an Instance with two slots. If usage is nil, deviceUsage is
// absent.
func instance(t *testing.T, c dynamic.Interface, namespace, name string, usage map[string]any) types.NamespacedName {
	t.Helper()
	configuration, _, _ := strings.Cut(name, "-")
	spec := map[string]any{
		"configurationName": configuration, "cdiName": v0.CDIName(configuration, name), "capacity": int64(2), "shared": true,
	}
	if usage != nil {
		spec["deviceUsage"] = usage
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Instance",
		"metadata": map[string]any{"name": name, "labels": map[string]any{v0.NodeLabel("node-a"): "", v0.NodeLabel("node-b"): ""}},
		"spec":     spec,
	}}
	if _, err := c.Resource(v0.InstanceResource).Namespace(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func usage(t *testing.T, c dynamic.Interface, name types.NamespacedName) map[int]v0.Owner {
	t.Helper()
	object, err := c.Resource(v0.InstanceResource).Namespace(name.Namespace).Get(t.Context(), name.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	read := &v0.Instance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, read); err != nil {
		t.Fatal(err)
	}
	return claims.Record(read).Usage
}

// owned returns slots owned by a node through the Instance's resource.
func owned(node string, numbers ...int) map[int]v0.Owner {
	owners := map[int]v0.Owner{}
	for _, number := range numbers {
		owners[number] = v0.Owner{Node: node}
	}
	return owners
}

func TestClaimAndRelease(t *testing.T) {
	config := apitest.Start(t)
	c := client(t, config)
	namespace := apitest.Namespace(t, config)
	for name, start := range map[string]map[string]any{
		"map-absent": nil, "map-empty": {}, "slot-empty": {"slot-empty-0": "", "slot-empty-1": ""},
	} {
		t.Run(name, func(t *testing.T) {
			ref := instance(t, c, namespace, name, start)
			a, b := executor(t, c, "node-a"), executor(t, c, "node-b")
			if got := a.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-a", 0)}); got.Outcome != slots.Written {
				t.Fatalf("claim of a free slot: %+v", got)
			}
			if got := a.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-a", 0, 1)}); got.Outcome != slots.Written {
				t.Fatalf("claim of an owned and a free slot: %+v", got)
			}
			if got := b.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-b", 1)}); got.Outcome != slots.Refused || got.Record == nil ||
				got.Record.Usage[1].Node != "node-a" {
				t.Fatalf("claim of another node's slot: %+v", got)
			}
			if got := b.Release(t.Context(), ref, owned("node-b", 1)); got.Outcome != slots.Refused {
				t.Fatalf("release of another node's slot: %+v", got)
			}
			if got := a.Release(t.Context(), ref, owned("node-a", 0, 1)); got.Outcome != slots.Written {
				t.Fatalf("release: %+v", got)
			}
			if got := b.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-b", 1)}); got.Outcome != slots.Written {
				t.Fatalf("claim of a released slot: %+v", got)
			}
			if got := usage(t, c, ref); !got[0].Free() || got[1].Node != "node-b" {
				t.Fatalf("deviceUsage is %v", got)
			}
		})
	}
}

// lossy drops the response to a patch, or the patch itself, or sends it later.
type lossy struct {
	next http.RoundTripper
	mode atomic.Int32
	// late is a request that was held back.
	late *http.Request
}

const (
	pass = iota
	loseAnswer
	loseRequest
	holdBack
)

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPatch {
		return l.next.RoundTrip(r)
	}
	switch mode := l.mode.Swap(pass); mode {
	case loseAnswer:
		response, err := l.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		response.Body.Close()
		return nil, errors.New("the response is lost")
	case loseRequest:
		return nil, errors.New("the request is lost")
	case holdBack:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		l.late = r.Clone(context.Background())
		l.late.Body = io.NopCloser(bytes.NewReader(body))
		return nil, errors.New("the request is on its way")
	}
	return l.next.RoundTrip(r)
}

func TestLostAnswers(t *testing.T) {
	config := apitest.Start(t)
	plain := client(t, config)
	namespace := apitest.Namespace(t, config)
	l := &lossy{}
	unreliable := rest.CopyConfig(config)
	unreliable.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l })
	e := executor(t, client(t, unreliable), "node-a")
	for i, mode := range []int32{loseAnswer, loseRequest} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			ref := instance(t, plain, namespace, fmt.Sprintf("lost-%d", i), nil)
			l.mode.Store(mode)
			if got := e.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-a", 0)}); got.Outcome != slots.Written {
				t.Fatalf("claim: %+v", got)
			}
			if got := usage(t, plain, ref); got[0].Node != "node-a" {
				t.Fatalf("deviceUsage is %v", got)
			}
			l.mode.Store(mode)
			if got := e.Release(t.Context(), ref, owned("node-a", 0)); got.Outcome != slots.Written {
				t.Fatalf("release: %+v", got)
			}
			if got := usage(t, plain, ref); !got[0].Free() {
				t.Fatalf("deviceUsage is %v", got)
			}
		})
	}
}

// TestLatePatches checks that a patch that arrives after its outcome was decided does
// nothing, even if the slot again looks as it did when the patch was sent.
func TestLatePatches(t *testing.T) {
	config := apitest.Start(t)
	plain := client(t, config)
	namespace := apitest.Namespace(t, config)
	l := &lossy{}
	unreliable := rest.CopyConfig(config)
	unreliable.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l })
	e := executor(t, client(t, unreliable), "node-a")
	other := executor(t, plain, "node-b")
	write := func(r claims.Result) {
		t.Helper()
		if r.Outcome != slots.Written {
			t.Fatalf("%+v", r)
		}
	}
	arrive := func(ref types.NamespacedName, want string) {
		t.Helper()
		response, err := l.next.RoundTrip(l.late)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if got := usage(t, plain, ref)[0].String(); got != want || response.StatusCode < 400 {
			t.Errorf("after the late patch (%s) the owner is %q, want %q", response.Status, got, want)
		}
	}
	group := map[int]v0.Owner{0: {Node: "node-a", VirtualID: "4"}}

	released := instance(t, plain, namespace, "late-1", nil)
	write(e.Claim(t.Context(), released, slots.Claim{Owners: group}))
	l.mode.Store(holdBack)
	write(e.Release(t.Context(), released, group))
	write(e.Claim(t.Context(), released, slots.Claim{Owners: group})) // for the next container
	arrive(released, "C:4:node-a")

	claimed := instance(t, plain, namespace, "late-2", nil)
	l.mode.Store(holdBack)
	write(e.Claim(t.Context(), claimed, slots.Claim{Owners: group}))
	write(e.Release(t.Context(), claimed, group))
	write(other.Claim(t.Context(), claimed, slots.Claim{Owners: owned("node-b", 0)}))
	arrive(claimed, "node-b")
}

// TestProbe checks that a probe changes nothing, and what an Instance that does not exist
// means.
func TestProbe(t *testing.T) {
	config := apitest.Start(t)
	c := client(t, config)
	namespace := apitest.Namespace(t, config)
	ref := instance(t, c, namespace, "probe-1", map[string]any{"probe-1-0": "node-b"})
	store := claims.NewStore(t, c, "node-a")
	a := claims.New(c, store, "akri-agent.node-a")
	probe := func() claims.Result { return a.Probe(t.Context(), ref, v0.Owner{Node: "node-a"}) }

	got := probe()
	if got.Outcome != slots.Written || got.Record == nil || got.Record.Usage[0].Node != "node-b" || !got.Record.Usage[1].Free() {
		t.Fatalf("probe of a free slot: %+v", got)
	}
	if got := usage(t, c, ref); !got[1].Free() {
		t.Fatalf("the probe has claimed a slot: %v", got)
	}
	if kept := store.Get(ref); kept.Spec.DeviceUsage["probe-1-1"] != "" {
		t.Fatalf("the cache has a claim that was not written: %v", kept.Spec.DeviceUsage)
	}

	ref.Name = "probe-2"
	claimed := a.Claim(t.Context(), ref, slots.Claim{Owners: owned("node-a", 0)})
	for what, got := range map[string]claims.Result{"probe": probe(), "claim": claimed} {
		if got.Outcome != slots.Refused || got.Record != nil || got.Err == nil || !got.Gone {
			t.Errorf("%s without an Instance: %+v", what, got)
		}
	}
}
