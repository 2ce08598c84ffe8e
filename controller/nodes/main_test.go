package nodes_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
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

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
	"akri.sh/akri/internal/apitest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// world is a namespace on a real API server in which the package's controllers run.
// There is no kubelet: a test sets the state of nodes.
type world struct {
	*apitest.World
	// requests counts the controllers' requests, except watches and Events.
	requests atomic.Int64
	// before, if set, is called before each of these requests is sent.
	mu     sync.Mutex
	before func(*http.Request)
	// stale, if set, keeps the controllers' watch of nodes from showing anything.
	stale atomic.Bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(t, corev1.AddToScheme, eventsv1.AddToScheme)}
	t.Cleanup(func() {
		// Controllers of other tests see the objects too.
		for _, object := range []client.Object{&v0.Instance{}, &v0.Configuration{}} {
			if err := w.DeleteAllOf(context.Background(), object, client.InNamespace(w.Namespace)); err != nil {
				t.Error(err)
			}
		}
	})
	return w
}

// run starts the controllers, which run until the test ends. Grace periods that are not given
// have their defaults.
func (w *world) run(options nodes.Options) {
	w.T.Helper()
	defaults := nodes.DefaultOptions(options.NotReadyGrace)
	options.GoneGrace = cmp.Or(options.GoneGrace, defaults.GoneGrace)
	options.EmptyGrace = cmp.Or(options.EmptyGrace, defaults.EmptyGrace)
	options.StaleDelay = cmp.Or(options.StaleDelay, defaults.StaleDelay)
	config := rest.CopyConfig(w.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("watch") == "" && !strings.HasSuffix(request.URL.Path, "/events") {
				w.requests.Add(1)
				w.mu.Lock()
				before := w.before
				w.mu.Unlock()
				if before != nil {
					before(request)
				}
			}
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") != "" && strings.HasSuffix(request.URL.Path, "/nodes") {
				response.Body = &staleWatch{response.Body, request.Context(), &w.stale}
			}
			return response, err
		})
	})
	scheme := runtime.NewScheme()
	if err := v0.AddToScheme(scheme); err != nil {
		w.T.Fatal(err)
	}
	reduced := cache.Options{DefaultTransform: func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return nodes.Reduce(node), nil
		}
		return object, nil
	}}
	w.StartManager(config, manager.Options{Scheme: scheme, Cache: reduced}, func(ctx context.Context, mgr manager.Manager) error {
		return nodes.Setup(ctx, mgr, options)
	})
}

// staleWatch is the body of a watch, from which nothing is read while it is stale.
type staleWatch struct {
	io.ReadCloser
	ctx   context.Context
	stale *atomic.Bool
}

func (s *staleWatch) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.stale.Load() {
		<-s.ctx.Done()
	}
	return n, err
}

// once calls do before the first request with this method and path suffix.
func (w *world) once(method, suffix string, do func()) { w.each(method, suffix, sync.OnceFunc(do)) }

// each calls do before each request with this method and path suffix.
func (w *world) each(method, suffix string, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(request *http.Request) {
		if request.Method == method && strings.HasSuffix(request.URL.Path, suffix) {
			do()
		}
	}
}

// node creates a node that is Ready, and returns its name, which is unique because
// nodes are shared with other tests.
func (w *world) node(name string) string {
	w.T.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace + "-" + name}}
	if err := w.Create(w.T.Context(), node); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		if err := w.Delete(context.Background(), node); client.IgnoreNotFound(err) != nil {
			w.T.Error(err)
		}
	})
	w.condition(node.Name, corev1.ConditionTrue)
	return node.Name
}

// condition sets the Ready condition of a node, as its kubelet does or, for Unknown,
// the node controller.
func (w *world) condition(node string, status corev1.ConditionStatus) {
	w.T.Helper()
	w.patchNode(node, map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": status, "lastHeartbeatTime": metav1.Now(), "lastTransitionTime": metav1.Now(),
			"message": time.Now().String()},
	}}})
}

func (w *world) patchNode(name string, content map[string]any) {
	w.T.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		w.T.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Status().Patch(w.T.Context(), node, client.RawPatch(types.StrategicMergePatchType, data)); err != nil {
		w.T.Error(err) // Fatal is not allowed on another goroutine
	}
}

func (w *world) deleteNode(name string) {
	w.T.Helper()
	if err := w.Delete(w.T.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		w.T.Fatal(err)
	}
}

// device creates an Instance that nodes see, with owners of its slots. Its name begins
// with that of its Configuration.
func (w *world) device(name string, shared bool, on []string, owners ...string) {
	w.T.Helper()
	configuration, _, _ := strings.Cut(name, "-")
	instance := &v0.Instance{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{}},
		Spec: v0.InstanceSpec{
			ConfigurationName: configuration, CDIName: v0.CDIName(configuration, name), Capacity: 9, Shared: shared, Nodes: on,
			DeviceUsage: map[string]v0.SlotOwner{},
		},
	}
	for _, node := range on {
		instance.Labels[v0.NodeLabel(node)] = ""
	}
	for slot, owner := range owners {
		instance.Spec.DeviceUsage[v0.SlotName(name, slot)] = v0.SlotOwner(owner)
	}
	if err := w.Create(w.T.Context(), instance); err != nil {
		w.T.Fatal(err)
	}
}

// instance returns an Instance, or nil if it does not exist.
func (w *world) instance(name string) *v0.Instance {
	w.T.Helper()
	instance := &v0.Instance{}
	err := w.Get(w.T.Context(), w.Key(name), instance)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return instance
}

// claim sets the owner of a free slot as an agent does.
func (w *world) claim(name string, slot int, owner string) {
	path := "/spec/deviceUsage/" + v0.SlotName(name, slot)
	data, err := json.Marshal([]map[string]any{
		{"op": "test", "path": path, "value": ""},
		{"op": "replace", "path": path, "value": owner},
	})
	if err != nil {
		w.T.Error(err)
	}
	instance := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	if err := w.Patch(w.T.Context(), instance, client.RawPatch(types.JSONPatchType, data)); err != nil {
		w.T.Error(err)
	}
}

// Pod creates a Pod on a node that uses a resource.
func (w *world) pod(name, node, uses string) *corev1.Pod {
	w.T.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "user", Image: "none", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceName(v0.ResourceName(uses)): resource.MustParse("1"),
			}},
		}}},
	}
	if err := w.Create(w.T.Context(), pod); err != nil {
		w.T.Fatal(err)
	}
	return pod
}

// off waits until a node is removed from an Instance.
func (w *world) off(name, node string) *v0.Instance {
	w.T.Helper()
	var instance *v0.Instance
	w.Eventually("node "+node+" off "+name, func() string {
		if instance = w.instance(name); instance == nil {
			return "the Instance does not exist"
		}
		return w.on(instance, node)
	})
	return instance
}

// deleted waits until an Instance does not exist.
func (w *world) deleted(name string) {
	w.T.Helper()
	w.Eventually("deletion of "+name, func() string {
		if w.instance(name) != nil {
			return "it still exists"
		}
		return ""
	})
}

// on returns "" if an Instance does not mention a node.
func (w *world) on(instance *v0.Instance, node string) string {
	content, err := json.Marshal(map[string]any{"labels": instance.Labels, "spec": instance.Spec})
	if err != nil {
		w.T.Fatal(err)
	}
	if strings.Contains(string(content), node) {
		return string(content)
	}
	return ""
}
