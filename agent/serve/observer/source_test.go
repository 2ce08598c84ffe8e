package observer_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
	"akri.sh/akri/internal/kubelettest"
)

// podRequests counts the requests for Pods.
type podRequests struct {
	next           http.RoundTripper
	lists, watches atomic.Int32
}

func count(config *rest.Config) (*rest.Config, *podRequests) {
	counter := &podRequests{}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counter.next = next
		return counter
	})
	return config, counter
}

func (c *podRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/pods") {
		if r.URL.Query().Get("watch") == "" {
			c.lists.Add(1)
		} else {
			c.watches.Add(1)
		}
	}
	return c.next.RoundTrip(r)
}

// TestPodsAPIThatDoesNotServe checks that a Pods API that is there but fails does not keep
// slots taken forever, and that it is used again as soon as it serves.
func TestPodsAPIThatDoesNotServe(t *testing.T) {
	for name, tc := range map[string]struct {
		options kubelettest.Options
		err     error
		repair  func(*kubelettest.Kubelet)
	}{
		"stale socket": {
			options: kubelettest.Options{StalePodsAPI: true},
			repair:  func(k *kubelettest.Kubelet) { k.ServePodsAPI() },
		},
		"unknown service": {
			err:    status.Error(codes.Unimplemented, "unknown service v1alpha1.Pods"),
			repair: func(k *kubelettest.Kubelet) { k.BreakPodsAPI(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, requests := count(apitest.Start(t))
			k := kubelettest.Start(t, tc.options)
			k.BreakPodsAPI(tc.err)
			w := newObserver(t, k, config)
			until(t, w, false)
			if n := requests.lists.Load(); n > 0 {
				t.Errorf("%d requests before the Pods API has failed several times", n)
			}
			until(t, w, true)
			tc.repair(k)
			// The Pod is in the Pods API only.
			k.Show(kubelettest.Pod("p", "akri.sh/cam-1", 1))
			until(t, w, false)
		})
	}
}

// TestUnreadablePods checks that a use does not end while the API server refuses to
// list the Pods, and that the requests back off.
func TestUnreadablePods(t *testing.T) {
	t.Parallel()
	config, requests := count(&rest.Config{Host: "http://127.0.0.1:1"})
	w := newObserver(t, kubelettest.Start(t, kubelettest.Options{NoPodsAPI: true}), config)
	time.Sleep(4 * time.Second)
	if !w.ReadsAPIServer() {
		t.Error("the Pods are not read from the API server")
	}
	// 0.25, 0.5, 1, 2 s, each up to one half longer
	if n := requests.lists.Load(); n < 2 || n > 5 {
		t.Errorf("%d attempts within 4 s", n)
	}
	if o, err := w.Observe(t.Context(), own); err != nil || len(o.Open) == 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestAPIServerThatDoesNotRespond checks that an observation is bounded, and still
// reports what the kubelet lists.
func TestAPIServerThatDoesNotRespond(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	k := kubelettest.Start(t, kubelettest.Options{NoPodsAPI: true})
	w := newObserver(t, k, &rest.Config{Host: "http://" + listener.Addr().String()})
	start := time.Now()
	o, err := w.Observe(t.Context(), own)
	if err != nil || len(o.Open) != 1 {
		t.Errorf("%+v, %v", o, err)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("the observation took %s", took)
	}
}

// TestNoListAtRest checks that a slot that only an init container of a running Pod has,
// which is never listed, causes no requests: the watch shows the Pod.
func TestNoListAtRest(t *testing.T) {
	fulltest.Only(t)
	t.Parallel()
	config, requests := count(apitest.Start(t))
	pods := createPod(t, config, apitest.Namespace(t, config), map[string]any{
		"initContainers": []any{wanting("init", "1")},
		"containers":     []any{map[string]any{"name": "app", "image": "x"}},
	})
	w := newObserver(t, kubelettest.Start(t, kubelettest.Options{NoPodsAPI: true}), config)
	for start := time.Now(); requests.watches.Load() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 15*time.Second {
			t.Fatal("no watch")
		}
	}
	until(t, w, false)
	before := requests.lists.Load()
	for range 20 {
		if o, err := w.Observe(t.Context(), own); err != nil || len(o.Open) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	if n := requests.lists.Load() - before; n > 0 {
		t.Errorf("%d lists for 20 observations in which nothing changed", n)
	}
	zero := int64(0)
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	until(t, w, true)
	if requests.lists.Load() == before {
		t.Error("the slot ended without a consistent list")
	}
}

// TestBrokenList checks that nothing ends while the podresources list fails, however it
// does.
func TestBrokenList(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	w := newObserver(t, k, &rest.Config{Host: "http://127.0.0.1:1"})
	until(t, w, true)
	for name, result := range map[string]func(context.Context) error{
		"too many requests": func(context.Context) error { return status.Error(codes.ResourceExhausted, "rejected by rate limit") },
		"unknown service": func(context.Context) error {
			return status.Error(codes.Unimplemented, "unknown service v1.PodResourcesLister")
		},
		"no response": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		k.BreakList(result)
		start := time.Now()
		if o, err := w.Observe(t.Context(), own); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("%s: the observation took %s", name, took)
		}
	}
	k.BreakList(nil)
	until(t, w, true)
}

// listOf returns a list of as many Pods as necessary for a size in bytes. The last one has
// the slots.
func listOf(size int, ids ...string) *podresources.ListPodResourcesResponse {
	list := &podresources.ListPodResourcesResponse{}
	other := &podresources.PodResources{Namespace: "default", Name: "other", Containers: []*podresources.ContainerResources{{
		Name: "app", Devices: []*podresources.ContainerDevices{{
			ResourceName: "example.org/disk", DeviceIds: []string{strings.Repeat("d", 1<<16)},
		}},
	}}}
	for range size / proto.Size(other) {
		list.PodResources = append(list.PodResources, other)
	}
	list.PodResources = append(list.PodResources, &podresources.PodResources{
		Namespace: "default", Name: "p", Containers: []*podresources.ContainerResources{{
			Name: "app", Devices: []*podresources.ContainerDevices{{ResourceName: "akri.sh/cam-1", DeviceIds: ids}},
		}},
	})
	return list
}

// garbage returns a list with bytes that are no message.
func garbage(bytes ...byte) *podresources.ListPodResourcesResponse {
	list := listOf(0)
	list.ProtoReflect().SetUnknown(bytes)
	return list
}

// TestOddLists checks what a list decides that no kubelet sends: one that cannot be read
// ends nothing, and one with IDs that the agent never offered only adds those. A node with
// thousands of Pods sends more than the 4 MiB that gRPC accepts by default.
func TestOddLists(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	w := newObserver(t, k, &rest.Config{Host: "http://127.0.0.1:1"})
	until(t, w, true)
	for name, tc := range map[string]struct {
		list   *podresources.ListPodResourcesResponse
		listed string // empty if the list cannot be read
	}{
		"a tag without a value":        {garbage(0x0a), ""},
		"a field longer than the list": {garbage(0x0a, 0xff, 0xff, 0x7f), ""},
		"a name that is not text":      {garbage(0x0a, 0x03, 0x0a, 0x01, 0xff), ""},
		"a varint without an end":      {garbage(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ""},
		"17 MiB":                       {listOf(17<<20, "cam-1-0"), ""},
		"5 MiB":                        {listOf(5<<20, "cam-1-0"), "[{cam-1 cam-1-0}]"},
		"15 MiB":                       {listOf(15<<20, "cam-1-0"), "[{cam-1 cam-1-0}]"},
		"IDs that were never offered": {listOf(0, "cam-1-0", "", "cam-1-x", "cam-1-99999"),
			"[{cam-1 } {cam-1 cam-1-0} {cam-1 cam-1-99999} {cam-1 cam-1-x}]"},
	} {
		k.AnswerList(tc.list)
		o, err := w.Observe(t.Context(), own)
		if tc.listed == "" && err == nil {
			t.Errorf("%s: the list was read: %+v", name, o)
		}
		if tc.listed != "" && (err != nil || fmt.Sprint(o.Listed) != tc.listed || len(o.Open) > 0) {
			t.Errorf("%s: got %v, open %v, %v; want %s", name, o.Listed, o.Open, err, tc.listed)
		}
	}
	k.AnswerList(nil)
	until(t, w, true)
}

// TestLostEvents checks that a Pod whose deletion the stream did not show keeps its slot
// only until the next resync.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	pod := kubelettest.Pod("p", "akri.sh/cam-1", 1)
	k.Show(pod)
	w := newObserver(t, k, &rest.Config{Host: "http://127.0.0.1:1"}, func(o *observer.Observer) { o.ResyncEvery(time.Second) })
	until(t, w, false)
	k.Lose(pod)
	until(t, w, true)
}

// TestAdmission checks that no slot ends while a Pod is being admitted: the kubelet lists
// the Pod, but not its ids until the device plugins have answered.
func TestAdmission(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	w := newObserver(t, k, &rest.Config{Host: "http://127.0.0.1:1"})
	until(t, w, true)
	release := k.Stall()
	admitted := make(chan struct{})
	go func() {
		defer close(admitted)
		_ = k.Admit(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}})
	}()
	until(t, w, false)
	release()
	<-admitted
	until(t, w, true)
}
