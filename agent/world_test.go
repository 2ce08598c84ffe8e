package agent_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/registry"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/internal/apitest"
)

const deadline = apitest.Timeout

// world is a namespace of an API server.
type world struct {
	t         *testing.T
	config    *rest.Config
	client    dynamic.Interface
	namespace string
}

func newWorld(t *testing.T) *world {
	config := apitest.Start(t)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, config: config, client: client, namespace: apitest.Namespace(t, config)}
}

// node simulates a node: a directory for an agent and its handlers.
type node struct {
	*world
	name         string
	directory    string
	availability string
	sink         *recorder
	missingDelay time.Duration
	// embedded are the handlers in the agent's process.
	embedded []embeddable.Handler
	// metrics is the address of the agent's metrics; "0" if empty.
	metrics string
	// hostPaths are permitted to handlers.
	hostPaths hostpaths.Policy
	// network are the handlers on the network that may register.
	network registry.Network
}

func (w *world) node(name string) *node {
	directory, err := os.MkdirTemp("", "akri") // short: socket paths are limited
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { os.RemoveAll(directory) })
	return &node{
		world:        w,
		name:         w.namespace + "-" + name,
		directory:    directory,
		availability: filepath.Join(directory, "availability"),
		sink:         &recorder{},
	}
}

// startAgent starts an agent and returns a function that stops it.
func (n *node) startAgent() (stop func()) {
	return n.start("agent", func(ctx context.Context) error {
		return agent.RunWithSink(ctx, agent.WithMissingDelay(agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: cmp.Or(n.metrics, "0"),
			EmbeddedHandlers: n.embedded, HostPaths: n.hostPaths, NetworkHandlers: n.network,
			Config: n.config, Logger: slog.New(slog.NewTextHandler(n.t.Output(), nil)).With("agent", n.name),
		}, n.missingDelay), n.sink)
	})
}

func (n *node) startHandler(shared bool) (stop func()) {
	return n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, debugecho.Name, debugecho.Handler{AvailabilityFile: n.availability},
			discovery.Options{Shared: shared, Dir: n.directory, Logger: slog.New(slog.DiscardHandler)})
	})
}

// scripted is a handler that sends the lists of a test.
type scripted struct{ lists chan []discovery.Device }

func (h scripted) Discover(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case list := <-h.lists:
			if err := send(list); err != nil {
				return err
			}
		}
	}
}

// startScripted starts a handler on the node, and creates a Configuration with its name. The
// function that it returns has the handler send a list.
func (n *node) startScripted(name string, capacity int) (send func(devices ...discovery.Device)) {
	handler := scripted{make(chan []discovery.Device)}
	n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, name, handler, discovery.Options{Dir: n.directory, Logger: slog.New(slog.DiscardHandler)})
	})
	n.configure(name, "", func(spec map[string]any) {
		spec["capacity"], spec["discoveryHandler"] = int64(capacity), map[string]any{"name": name}
	})
	return func(devices ...discovery.Device) { handler.lists <- devices }
}

func (n *node) start(what string, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			n.t.Errorf("%s of %s: %v", what, n.name, err)
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	n.t.Cleanup(stop)
	return stop
}

func (n *node) setAvailability(content string) {
	n.t.Helper()
	if err := os.WriteFile(n.availability, []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

// configure creates or replaces a Configuration of debugEcho.
func (w *world) configure(name, details string, edit func(spec map[string]any)) *unstructured.Unstructured {
	w.t.Helper()
	spec := map[string]any{
		"discoveryHandler": map[string]any{"name": debugecho.Name, "discoveryDetails": details},
		"capacity":         int64(2), "brokerProperties": map[string]any{"OPERATOR": "me"},
	}
	if edit != nil {
		edit(spec)
	}
	made, err := w.client.Resource(v0.ConfigurationResource).
		Namespace(w.namespace).
		Apply(w.t.Context(), name, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v0.GroupVersion.String(), "kind": "Configuration", "metadata": map[string]any{"name": name}, "spec": spec,
		}}, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { // another test may use the same name
		w.remove(name)
	})
	return made
}

func (w *world) remove(name string) {
	_ = w.client.Resource(v0.ConfigurationResource).Namespace(w.namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
}

func (w *world) instances() map[string]*v0.Instance {
	w.t.Helper()
	list, err := w.client.Resource(v0.InstanceResource).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]*v0.Instance{}
	for _, object := range list.Items {
		instance := &v0.Instance{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, instance); err != nil {
			w.t.Fatal(err)
		}
		all[instance.Annotations[v0.AnnotationDeviceID]] = instance
	}
	return all
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	apitest.Eventually(w.t, what, func() string {
		if holds() {
			return ""
		}
		return fmt.Sprintf("the Instances are %v", slices.Sorted(maps.Keys(w.instances())))
	})
}

func (w *world) awaitDevices(ids ...string) map[string]*v0.Instance {
	w.t.Helper()
	slices.Sort(ids)
	var seen map[string]*v0.Instance
	w.eventually("the devices are"+quoted(ids), func() bool {
		seen = w.instances()
		return slices.Equal(slices.Sorted(maps.Keys(seen)), ids)
	})
	return seen
}

func quoted(ids []string) string {
	text := ""
	for _, id := range ids {
		text += " " + id
	}
	return text
}

func (w *world) failures(name string) []v0.DiscoveryFailure {
	w.t.Helper()
	object, err := w.client.Resource(v0.ConfigurationResource).Namespace(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	configuration := &v0.Configuration{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, configuration); err != nil {
		w.t.Fatal(err)
	}
	return configuration.Status.DiscoveryFailures
}

// recorder is a sink that stores the devices.
type recorder struct {
	mu     sync.Mutex
	latest map[types.NamespacedName][]device.Device
}

func (r *recorder) Publish(configuration types.NamespacedName, devices []device.Device) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest == nil {
		r.latest = map[types.NamespacedName][]device.Device{}
	}
	r.latest[configuration] = devices
}

func (r *recorder) of(namespace, name string) []device.Device {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (w *world) put(kind, resource, name string, content map[string]any) {
	w.t.Helper()
	content["apiVersion"], content["kind"], content["metadata"] = "v1", kind, map[string]any{"name": name, "namespace": w.namespace}
	client := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource}).Namespace(w.namespace)
	_, err := client.Create(w.t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = client.Update(w.t.Context(), &unstructured.Unstructured{Object: content}, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
