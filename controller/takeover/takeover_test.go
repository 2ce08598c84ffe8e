package takeover_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/takeover"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/original"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(apitest.Run(m))
}

// short is a delay that a test waits for.
const short = 100 * time.Millisecond

// world is a namespace on a real API server in which the package's controllers run.
type world struct {
	*apitest.World
	dynamic       dynamic.Interface
	requests      atomic.Int64 // of the controllers, except watches
	configuration *v0.Configuration
}

// newWorld creates a Configuration with a shared device, as agents of Akri on two nodes
// write them.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: apitest.NewWorld(t, corev1.AddToScheme)}
	api, err := dynamic.NewForConfig(w.Config)
	if err != nil {
		t.Fatal(err)
	}
	w.dynamic = api
	w.configuration = &v0.Configuration{ObjectMeta: w.Meta("cam"), Spec: v0.ConfigurationSpec{
		DiscoveryHandler: v0.DiscoveryHandler{Name: "h"}, Capacity: 2,
	}}
	if err := w.Create(t.Context(), w.configuration); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"node-a", "node-b"} {
		w.must(w.akri(node).Finalize(t.Context(), v0.ConfigurationKind, v0.ConfigurationResource, "cam"))
		w.must(w.akri(node).Publish(t.Context(), w.configuration, device))
	}
	t.Cleanup(func() { // other tests share the API server
		for _, object := range []client.Object{&v0.Instance{}, &v0.Configuration{}} {
			_ = w.DeleteAllOf(context.Background(), object, client.InNamespace(w.Namespace))
		}
	})
	return w
}

var device = original.Device{Name: "cam-8120fe", Properties: map[string]any{"K": "v"}, Capacity: 2, Shared: true}

func (w *world) akri(node string) original.Agent {
	return original.Agent{Client: w.dynamic, Namespace: w.Namespace, Node: node}
}

func (w *world) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// run starts the controllers, which run until the test ends.
func (w *world) run(labelDelay time.Duration) {
	w.T.Helper()
	config := rest.CopyConfig(w.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.URL.Query().Get("watch") == "" {
				w.requests.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	scheme := runtime.NewScheme()
	w.must(v0.AddToScheme(scheme))
	w.must(corev1.AddToScheme(scheme))
	caching := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	w.StartManager(config, manager.Options{Scheme: scheme, Cache: caching}, func(_ context.Context, mgr manager.Manager) error {
		return takeover.Setup(mgr, short, labelDelay)
	})
}

// finalizers awaits the finalizers of the Configuration and its Instance.
func (w *world) finalizers(want ...string) {
	w.T.Helper()
	for name, object := range map[string]client.Object{"cam": &v0.Configuration{}, device.Name: &v0.Instance{}} {
		w.Eventually("the finalizers of "+name, func() string {
			w.Read(name, object)
			if got := object.GetFinalizers(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
				return "they are " + strings.Join(got, " ")
			}
			return ""
		})
	}
}

// Finalizers of agents of Akri go, also of nodes that do not exist; those of others stay.
func TestFinalizersOfAkriAreRemoved(t *testing.T) {
	w := newWorld(t)
	// A finalizer without a domain that somebody else has added, and one with the name of
	// a node that was not applied by its agent.
	for _, object := range []client.Object{
		&v0.Configuration{ObjectMeta: w.Meta("cam")}, &v0.Instance{ObjectMeta: w.Meta(device.Name)},
	} {
		patch := client.RawPatch("application/json-patch+json",
			[]byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"node-c"},{"op":"add","path":"/metadata/finalizers/-","value":"x.io/f"}]`))
		w.must(w.Patch(t.Context(), object, patch, client.FieldOwner("node-a-fin")))
	}
	w.run(time.Hour)
	w.finalizers("node-c", "x.io/f")
	if read := w.instance(); !slices.Equal(read.Spec.Nodes, []string{"node-a", "node-b"}) {
		t.Errorf("the nodes are %v", read.Spec.Nodes)
	}
}

// What Akri made can be deleted, and an Instance that is already being deleted goes.
func TestDeletedObjectsGo(t *testing.T) {
	w := newWorld(t)
	w.must(w.Delete(t.Context(), w.configuration))
	w.must(w.Delete(t.Context(), w.instance()))
	w.run(time.Hour)
	w.Eventually("the objects are gone", func() string {
		for _, object := range []client.Object{w.configuration, &v0.Instance{ObjectMeta: w.Meta(device.Name)}} {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				return object.GetName() + " exists"
			}
		}
		return ""
	})
}

// An agent of Akri that still runs adds its finalizer again at each event. That is not
// a loop: each time, the finalizer is left alone for twice as long.
func TestNoFightWithARunningAgent(t *testing.T) {
	w := newWorld(t)
	w.run(time.Hour)
	const rounds = 4
	began := time.Now()
	for range rounds {
		w.finalizers()
		w.must(w.akri("node-a").Finalize(t.Context(), v0.InstanceKind, v0.InstanceResource, device.Name))
		w.must(w.akri("node-a").Finalize(t.Context(), v0.ConfigurationKind, v0.ConfigurationResource, "cam"))
	}
	w.finalizers()
	if took, least := time.Since(began), short*(1<<rounds-1); took < least {
		t.Errorf("%d rounds took %v, want at least %v", rounds, took, least)
	}
}

// An Instance gets the labels of the nodes that it names and that exist. Then there is
// nothing to do, and nothing is sent.
func TestLabels(t *testing.T) {
	w := newWorld(t)
	nodes := []string{w.Namespace + "-a", w.Namespace + "-b"}
	for _, node := range nodes {
		object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
		w.must(w.Create(t.Context(), object))
		t.Cleanup(func() { _ = w.Delete(context.Background(), object) })
		w.must(w.akri(node).Publish(t.Context(), w.configuration, device))
	}
	w.must(w.akri(nodes[1]).Own(t.Context(), device.Name, map[string]any{device.Name + "-0": nodes[1]}))
	w.must(w.akri(nodes[1]).Leave(t.Context(), "cam", device)) // only the slot names it
	w.run(short)
	want := map[string]string{v0.NodeLabel(nodes[0]): "", v0.NodeLabel(nodes[1]): ""}
	w.Eventually("the labels", func() string {
		if got := w.instance().Labels; !maps.Equal(got, want) {
			return fmt.Sprint(got)
		}
		return ""
	})
	w.finalizers()
	before := w.requests.Load()
	read := w.instance()
	read.Spec.BrokerProperties["K"] = "w" // an event
	w.must(w.Update(t.Context(), read))
	time.Sleep(5 * short) // nothing may follow
	if sent := w.requests.Load() - before; sent != 0 {
		t.Errorf("%d requests at rest", sent)
	}
}

func (w *world) instance() *v0.Instance {
	w.T.Helper()
	var read v0.Instance
	w.Read(device.Name, &read)
	return &read
}
