package observer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/kubelettest"
)

func TestMain(m *testing.M) {
	code := apitest.Run(m)
	if err := goleak.Find(goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1")); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

var own = []slots.Use{{Resource: "cam-1", ID: "cam-1-0"}}

// newObserver runs an observer of a kubelet. The Pods come from the API server of config;
// the node has the name of the test.
func newObserver(t *testing.T, k *kubelettest.Kubelet, config *rest.Config) *observer.Observer {
	t.Helper()
	client, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	lister, err := kubelet.NewLister(k.Dir())
	if err != nil {
		t.Fatal(err)
	}
	w := observer.New(observer.Options{
		Node: nodeOf(t), Lister: lister, BeforeList: func(context.Context) {}, Client: client,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return w
}

func nodeOf(t *testing.T) string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
}

// joined runs a kubelet whose Pods the API server knows.
func joined(t *testing.T, config *rest.Config, options kubelettest.Options) *kubelettest.Kubelet {
	t.Helper()
	k := kubelettest.Start(t, options)
	if err := k.Join(config, nodeOf(t)); err != nil {
		t.Fatal(err)
	}
	return k
}

// pod returns a Pod that requests a slot. Its name is that of the test.
func pod(t *testing.T) *corev1.Pod { return kubelettest.Pod(nodeOf(t), "akri.sh/cam-1", 1) }

// until observes until the own slot has ended, or is undecided.
func until(t *testing.T, w *observer.Observer, ended bool) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 30*time.Second {
		o, err := w.Observe(t.Context(), own)
		if err == nil && len(o.Listed) == 0 && len(o.Open) == 0 == ended {
			return time.Since(start)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the slot did not reach the state ended=%v", ended)
	return 0
}

// TestEnd checks that a slot of a Pod that the kubelet does not list is open until the Pod
// has terminated, and then free at once. Until then, the watch suffices.
func TestEnd(t *testing.T) {
	t.Parallel()
	config, g := gated(apitest.Start(t))
	k, p := joined(t, apitest.Start(t), kubelettest.Options{}), pod(t)
	w := newObserver(t, k, config)
	until(t, w, true)
	k.Show(p)
	until(t, w, false)
	before := int32(-1)
	for g.lists.Load() != before { // until the watch shows the Pod
		before = g.lists.Load()
		until(t, w, false)
	}
	for range 20 {
		until(t, w, false)
	}
	if n := g.lists.Load() - before; n > 0 {
		t.Errorf("%d lists for 20 observations in which nothing changed", n)
	}
	k.End(p)
	if took := until(t, w, true); took > 3*time.Second {
		t.Errorf("the slot was free %s after the Pod ended", took)
	}
}

// gate is a [http.RoundTripper] that can hold requests for Pods.
type gate struct {
	next         http.RoundTripper
	holds, fails atomic.Value // func(watch bool) bool
	lists        atomic.Int32
	stale        atomic.Bool // watches show nothing
}

func gated(config *rest.Config) (*rest.Config, *gate) {
	g := &gate{}
	never := func(bool) bool { return false }
	g.holds.Store(never)
	g.fails.Store(never)
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		g.next = next
		return g
	})
	return config, g
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	watch := r.URL.Query().Get("watch") != ""
	if !watch {
		g.lists.Add(1)
	}
	for g.holds.Load().(func(bool) bool)(watch) && r.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if g.fails.Load().(func(bool) bool)(watch) {
		return nil, errors.New("connection refused")
	}
	response, err := g.next.RoundTrip(r)
	if err == nil && watch {
		response.Body = &watchBody{response.Body, g, r.Context()}
	}
	return response, err
}

type watchBody struct {
	io.ReadCloser
	g   *gate
	ctx context.Context
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for b.g.stale.Load() && b.ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	return n, err
}

func isWatch(watch bool) bool { return watch }
func isList(watch bool) bool  { return !watch }
func isAny(bool) bool         { return true }
func isNone(bool) bool        { return false }

// TestNotSynced checks that no slot ends before the watch has shown all Pods: of those that
// have vanished since, it would not know.
func TestNotSynced(t *testing.T) {
	t.Parallel()
	config, g := gated(apitest.Start(t))
	g.holds.Store(isWatch)
	w := newObserver(t, kubelettest.Start(t, kubelettest.Options{}), config)
	for start := time.Now(); time.Since(start) < time.Second; time.Sleep(20 * time.Millisecond) {
		if o, err := w.Observe(t.Context(), own); err != nil || len(o.Open) == 0 {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if n := g.lists.Load(); n > 0 {
		t.Errorf("%d lists that cannot decide", n)
	}
	g.holds.Store(isNone)
	select {
	case <-w.Changed():
	case <-time.After(10 * time.Second):
		t.Error("that slots can be freed now is not signaled")
	}
	until(t, w, true)
}

// TestAPIServerAway checks that no slot ends while the Pods cannot be listed, that an
// observation is bounded, and still reports what the kubelet lists.
func TestAPIServerAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]func(*gate){
		"refused":      func(g *gate) { g.fails.Store(isAny) },
		"no answer":    func(g *gate) { g.holds.Store(isAny) },
		"only watches": func(g *gate) { g.fails.Store(isList) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, g := gated(apitest.Start(t))
			w := newObserver(t, kubelettest.Start(t, kubelettest.Options{}), config)
			until(t, w, true)
			tc(g)
			start := time.Now()
			if o, err := w.Observe(t.Context(), own); err != nil || len(o.Open) != 1 || o.Accounted {
				t.Errorf("%+v, %v", o, err)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("the observation took %s", took)
			}
			g.fails.Store(isNone)
			g.holds.Store(isNone)
			until(t, w, true)
		})
	}
}

// TestStaleWatch checks that a Pod that the watch does not show yet keeps its slot, although
// the list of a kubelet that has just started is empty.
func TestStaleWatch(t *testing.T) {
	t.Parallel()
	config, g := gated(apitest.Start(t))
	k, p := joined(t, apitest.Start(t), kubelettest.Options{Warmup: time.Minute}), pod(t)
	w := newObserver(t, k, config)
	until(t, w, true)
	g.stale.Store(true)
	k.Show(p)
	until(t, w, false)
	if g.lists.Load() == 0 {
		t.Error("the watch was not behind")
	}
	k.End(p)
	g.stale.Store(false)
	until(t, w, true)
}

// listOf returns a list of as many Pods as necessary for a size in bytes. The last one has
// the slots.
func listOf(size int, ids ...string) *podresources.ListPodResourcesResponse {
	of := func(name, resource string, ids ...string) *podresources.PodResources {
		return &podresources.PodResources{Namespace: "default", Name: name, Containers: []*podresources.ContainerResources{{
			Name: "app", Devices: []*podresources.ContainerDevices{{ResourceName: resource, DeviceIds: ids}},
		}}}
	}
	list, other := &podresources.ListPodResourcesResponse{}, of("other", "example.org/disk", strings.Repeat("d", 1<<16))
	for range size / proto.Size(other) {
		list.PodResources = append(list.PodResources, other)
	}
	list.PodResources = append(list.PodResources, of("p", "akri.sh/cam-1", ids...))
	return list
}

// TestLists checks that nothing ends while the podresources list cannot be read, and that
// IDs that the agent never offered are only added. A node with thousands of Pods sends more
// than the 4 MiB that gRPC accepts by default.
func TestLists(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	w := newObserver(t, k, apitest.Start(t))
	until(t, w, true)
	for name, tc := range map[string]struct {
		broken func(context.Context) error
		list   *podresources.ListPodResourcesResponse
		listed string // empty if the list cannot be read
	}{
		"refused":     {broken: func(context.Context) error { return status.Error(codes.ResourceExhausted, "rejected by rate limit") }},
		"no response": {broken: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		"17 MiB":      {list: listOf(17<<20, "cam-1-0")},
		"15 MiB":      {list: listOf(15<<20, "cam-1-0"), listed: "[{cam-1 cam-1-0}]"},
		"IDs that were never offered": {list: listOf(0, "cam-1-0", "", "cam-1-x", "cam-1-99999"),
			listed: "[{cam-1 } {cam-1 cam-1-0} {cam-1 cam-1-99999} {cam-1 cam-1-x}]"},
	} {
		k.BreakList(tc.broken)
		k.AnswerList(tc.list)
		start := time.Now()
		o, err := w.Observe(t.Context(), own)
		if tc.listed == "" && err == nil {
			t.Errorf("%s: the list was read: %+v", name, o)
		}
		if tc.listed != "" && (err != nil || fmt.Sprint(o.Listed) != tc.listed || len(o.Open) > 0) {
			t.Errorf("%s: got %v, open %v, %v; want %s", name, o.Listed, o.Open, err, tc.listed)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%s: the observation took %s", name, took)
		}
	}
}
