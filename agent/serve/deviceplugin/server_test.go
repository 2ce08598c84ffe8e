package deviceplugin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/deviceplugin"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/kubelettest"
)

// world is one namespace of an API server.
type world struct {
	t         *testing.T
	config    *rest.Config
	client    dynamic.Interface
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, config: config, client: client, namespace: apitest.Namespace(t, config)}
}

// instance creates an Instance that nodes see. The tests share one API server, so
// each uses a different name.
func (w *world) instance(name string, nodes ...string) {
	w.t.Helper()
	configuration, _, _ := strings.Cut(name, "-")
	labels := map[string]any{}
	for _, n := range nodes {
		labels[v0.NodeLabel(n)] = ""
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Instance",
		"metadata": map[string]any{"name": name, "labels": labels},
		"spec": map[string]any{
			"configurationName": configuration, "cdiName": v0.CDIName(configuration, name), "capacity": int64(5), "shared": true,
		},
	}}
	if _, err := w.client.Resource(v0.InstanceResource).
		Namespace(w.namespace).
		Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = w.client.Resource(v0.InstanceResource).Namespace(w.namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func (w *world) instances() dynamic.ResourceInterface {
	return w.client.Resource(v0.InstanceResource).Namespace(w.namespace)
}

func (w *world) owner(instance string, slot int) string {
	w.t.Helper()
	object, err := w.client.Resource(v0.InstanceResource).Namespace(w.namespace).Get(w.t.Context(), instance, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	usage, _, _ := unstructured.NestedStringMap(object.Object, "spec", "deviceUsage")
	return usage[v0.SlotName(instance, slot)]
}

// becomes waits until a slot has the given owner, and returns how long that took.
func (w *world) becomes(instance string, slot int, owner string, within time.Duration) time.Duration {
	w.t.Helper()
	start := time.Now()
	for {
		got := w.owner(instance, slot)
		if got == owner {
			return time.Since(start)
		}
		if time.Since(start) > within {
			w.t.Fatalf("after %s slot %d of %s is owned by %q, want %q", within, slot, instance, got, owner)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// stays checks that the owner of a slot does not change for some time.
func (w *world) stays(instance string, slot int, owner string, during time.Duration) {
	w.t.Helper()
	for start := time.Now(); time.Since(start) < during; time.Sleep(50 * time.Millisecond) {
		if got := w.owner(instance, slot); got != owner {
			w.t.Fatalf("after %s slot %d of %s is owned by %q, was %q", time.Since(start), slot, instance, got, owner)
		}
	}
}

// agent is the serving half of one node's agent.
type agent struct {
	*deviceplugin.Server
	w       *world
	stop    func()
	metrics *prometheus.Registry
	down    atomic.Bool // the API server is unreachable
	// forbidden means that the API server denies changes of Instances.
	forbidden atomic.Bool
	// patchTime is how long a change of an Instance takes, in nanoseconds.
	patchTime atomic.Int64
}

func (a *agent) RoundTrip(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if a.down.Load() {
			return nil, errors.New("connection refused")
		}
		change := r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/instances/")
		if change {
			time.Sleep(time.Duration(a.patchTime.Load()))
		}
		if change && a.forbidden.Load() {
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"denied by a policy","code":403}`
			return &http.Response{
				StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": []string{"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)), Request: r,
			}, nil
		}
		return next.RoundTrip(r)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *world) agent(node string, k *kubelettest.Kubelet) *agent {
	w.t.Helper()
	if err := k.Join(w.config, node); err != nil {
		w.t.Fatal(err)
	}
	a := &agent{w: w, metrics: prometheus.NewRegistry()}
	config := rest.CopyConfig(w.config)
	config.Wrap(a.RoundTrip)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("AKRI_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	store, err := instances.New(client, node, func(types.NamespacedName) {}, log)
	if err != nil {
		w.t.Fatal(err)
	}
	coreClient, err := core.NewClient(config)
	if err != nil {
		w.t.Fatal(err)
	}
	a.Server, err = deviceplugin.New(deviceplugin.Options{
		NodeName: node, KubeletDir: k.Dir(), FieldManager: "akri-agent." + node, Client: client, Core: coreClient,
		Instances: store, Log: log, Metrics: a.metrics,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { store.Run(ctx, a.InstanceEvent) })
	running.Go(func() {
		if err := a.Run(ctx); err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	a.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	w.t.Cleanup(a.stop)
	return a
}

func (a *agent) publish(devices ...device.Device) {
	a.Publish(types.NamespacedName{Namespace: a.w.namespace, Name: "cam"}, devices)
}

func (w *world) device(name string, capacity int32) device.Device {
	return device.Device{
		Instance: types.NamespacedName{Namespace: w.namespace, Name: name}, Configuration: "cam", ID: name,
		Shared: true, Capacity: capacity, Online: true, Properties: map[string]string{"URL": "rtsp://" + name},
	}
}

func count(health string, n int) func(map[string]string) bool {
	return func(devices map[string]string) bool {
		found := 0
		for h := range maps.Values(devices) {
			if h == health {
				found++
			}
		}
		return found == n
	}
}

func admit(t *testing.T, k *kubelettest.Kubelet, name, instance string) *corev1.Pod {
	t.Helper()
	pod := kubelettest.Pod(name, v0.ResourceName(instance), 1)
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// aged waits until observations apply to the slots allocated so far.
func aged() { time.Sleep(2100 * time.Millisecond) }

func TestPodClaimsAndReleasesASlot(t *testing.T) {
	w := newWorld(t)
	const instance = "cam-aaaaaa"
	w.instance(instance, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	a.publish(w.device(instance, 2))
	k.Await(v0.ResourceName(instance), count(plugin.Healthy, 2))
	pod := admit(t, k, "p", instance)
	if got := w.owner(instance, 0); got != "node-a" {
		t.Fatalf("after the admission, slot 0 is owned by %q", got)
	}
	if env := k.Responses(pod, "app")[0].Envs; env["URL"] != "rtsp://"+instance {
		t.Errorf("environment %v", env)
	}
	w.stays(instance, 0, "node-a", 3*time.Second)
	k.End(pod)
	took := w.becomes(instance, 0, "", 12*time.Second)
	t.Logf("free %s after the pod ended", took)
	families, err := a.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			counted[family.GetName()] += metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for _, name := range []string{"allocations_total", "claims_total", "releases_total", "release_latency_seconds"} {
		if got := counted["akri_agent_"+name]; got != 1 {
			t.Errorf("the metric %s counts %v, want 1", name, got)
		}
	}
}

// TestNodeLeavesWhileContainerRuns checks that the slot of a container is released
// although its Instance no longer has the node's label.
func TestNodeLeavesWhileContainerRuns(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-1ea4e5", "node-a", "node-b")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	a.publish(w.device("cam-1ea4e5", 1))
	k.Await("akri.sh/cam-1ea4e5", count(plugin.Healthy, 1))
	pod := admit(t, k, "p", "cam-1ea4e5")
	a.publish()
	patch := []byte(`{"metadata":{"labels":{"` + v0.NodeLabel("node-a") + `":null}}}`)
	_, err := w.client.Resource(v0.InstanceResource).Namespace(w.namespace).
		Patch(t.Context(), "cam-1ea4e5", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	aged()
	w.stays("cam-1ea4e5", 0, "node-a", time.Second)
	k.End(pod)
	w.becomes("cam-1ea4e5", 0, "", 12*time.Second)
}

func TestWithoutAPIServer(t *testing.T) {
	w := newWorld(t)
	w.instance("usb-aaaaaa", "node-a")
	w.instance("cam-fedfed", "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a := w.agent("node-a", k)
	local := w.device("usb-aaaaaa", 1)
	local.Shared = false
	a.publish(local, w.device("cam-fedfed", 1))
	k.Await("akri.sh/usb-aaaaaa", count(plugin.Healthy, 1))
	k.Await("akri.sh/cam-fedfed", count(plugin.Healthy, 1))
	a.down.Store(true)
	start := time.Now()
	admit(t, k, "local", "usb-aaaaaa")
	if took := time.Since(start); took > claims.Deadline {
		t.Errorf("the allocation of a local device took %s", took)
	}
	start = time.Now()
	if err := k.Admit(kubelettest.Pod("shared", "akri.sh/cam-fedfed", 1)); err == nil {
		t.Error("a slot of a shared device was allocated without a record")
	}
	if took := time.Since(start); took > 2*claims.Deadline {
		t.Errorf("the refusal took %s", took)
	}
	a.down.Store(false)
	w.becomes("usb-aaaaaa", 0, "node-a", 15*time.Second)
}
