package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// patience is how long a test waits for something that must happen. It limits
// failures only: no test passes because of it.
const patience = 20 * time.Second

// world is a namespace on a real API server on which the package's controllers
// run. There is no kubelet: the test writes the nodes.
type world struct {
	client.Client
	t         *testing.T
	config    *rest.Config
	namespace string
	// requests counts the controllers' requests, but not watches and Events.
	requests atomic.Int64
	mu       sync.Mutex
	// before, if set, is called before each of their requests is sent.
	before func(*http.Request)
}

func enter(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, config: apitest.Start(t)}
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(corev1.AddToScheme(scheme), eventsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.Client, err = client.New(w.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	w.namespace = apitest.Namespace(t, w.config)
	t.Cleanup(func() {
		// The controllers of other tests would see them.
		if err := w.DeleteAllOf(context.Background(), &v0.Instance{}, client.InNamespace(w.namespace)); err != nil {
			t.Error(err)
		}
	})
	return w
}

// run starts the controllers, which run until the test ends.
func (w *world) run(options nodes.Options) {
	w.t.Helper()
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("watch") == "" && !strings.HasSuffix(request.URL.Path, "/events") {
				w.requests.Add(1)
				w.mu.Lock()
				before := w.before
				w.mu.Unlock()
				if before != nil {
					before(request)
				}
			}
			return next.RoundTrip(request)
		})
	})
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		w.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(config, manager.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultTransform: func(object any) (any, error) {
			if node, ok := object.(*corev1.Node); ok {
				return nodes.Reduce(node), nil
			}
			return object, nil
		}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := nodes.Setup(ctx, mgr, options); err != nil {
		w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("the controllers ended with: %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// once calls do before the first request of a method whose path ends in suffix.
func (w *world) once(method, suffix string, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var first sync.Once
	w.before = func(request *http.Request) {
		if request.Method == method && strings.HasSuffix(request.URL.Path, suffix) {
			first.Do(do)
		}
	}
}

// node creates a node that is Ready, and returns its name, which is unique: other
// tests share the API server.
func (w *world) node(name string) string {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + name}}
	if err := w.Create(w.t.Context(), node); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.Delete(context.Background(), node); client.IgnoreNotFound(err) != nil {
			w.t.Error(err)
		}
	})
	w.condition(node.Name, corev1.ConditionTrue)
	return node.Name
}

// condition writes the Ready condition of a node, as its kubelet or, for Unknown,
// the node controller would.
func (w *world) condition(node string, status corev1.ConditionStatus) {
	w.t.Helper()
	w.patchNode(node, map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": status, "lastHeartbeatTime": metav1.Now(), "lastTransitionTime": metav1.Now(),
			"message": time.Now().String()},
	}}})
}

func (w *world) patchNode(name string, content map[string]any) {
	w.t.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		w.t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Status().Patch(w.t.Context(), node, client.RawPatch(types.StrategicMergePatchType, data)); err != nil {
		w.t.Error(err) // it may be called by another goroutine
	}
}

func (w *world) deleteNode(name string) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

// device creates an Instance that nodes see, with the owners of its slots.
func (w *world) device(name string, shared bool, on []string, owners ...string) {
	w.t.Helper()
	instance := &v0.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{}},
		Spec: v0.InstanceSpec{
			ConfigurationName: "cams", CDIName: "akri.sh/cams=1", Capacity: 9, Shared: shared, Nodes: on,
			DeviceUsage: map[string]v0.SlotOwner{},
		},
	}
	for _, node := range on {
		instance.Labels[v0.NodeLabel(node)] = ""
	}
	for slot, owner := range owners {
		instance.Spec.DeviceUsage[v0.SlotName(name, slot)] = v0.SlotOwner(owner)
	}
	if err := w.Create(w.t.Context(), instance); err != nil {
		w.t.Fatal(err)
	}
}

// instance returns an Instance, or nil if it does not exist.
func (w *world) instance(name string) *v0.Instance {
	w.t.Helper()
	instance := &v0.Instance{}
	err := w.Get(w.t.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, instance)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return instance
}

// claim writes the owner of a free slot as an agent does.
func (w *world) claim(name string, slot int, owner string) {
	path := "/spec/deviceUsage/" + v0.SlotName(name, slot)
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": path, "value": ""},
		{"op": "replace", "path": path, "value": owner},
	})
	if err != nil {
		w.t.Error(err)
	}
	instance := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.Patch(w.t.Context(), instance, client.RawPatch(types.JSONPatchType, data)); err != nil {
		w.t.Error(err)
	}
}

// pod creates a Pod on a node that uses a resource.
func (w *world) pod(name, node, uses string) *corev1.Pod {
	w.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "user", Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceName(v0.ResourceName(uses)): resource.MustParse("1"),
			}},
		}}},
	}
	if err := w.Create(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// off waits until a node has been removed from an Instance, and returns it.
func (w *world) off(name, node string) *v0.Instance {
	w.t.Helper()
	var instance *v0.Instance
	w.eventually("node "+node+" off "+name, func() string {
		if instance = w.instance(name); instance == nil {
			return "the Instance does not exist"
		}
		return w.on(instance, node)
	})
	return instance
}

// on returns "" if an Instance does not mention a node.
func (w *world) on(instance *v0.Instance, node string) string {
	content, err := json.Marshal(map[string]any{"labels": instance.Labels, "spec": instance.Spec})
	if err != nil {
		w.t.Fatal(err)
	}
	if strings.Contains(string(content), node) {
		return string(content)
	}
	return ""
}

// eventually waits until check returns "", and fails with what it returned last.
func (w *world) eventually(what string, check func() string) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: still not after %v: %s", what, patience, complaint)
		}
	}
}
