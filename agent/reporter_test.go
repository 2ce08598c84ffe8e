package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"akri.sh/akri/agent/informer"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// sharedStatus is the last observed state of one Configuration, for many nodes: a cache
// for each of them would cost more than what is tested.
type sharedStatus struct {
	mu     sync.Mutex
	latest *cachedConfiguration // with the failures of all nodes
	nodes  []*reportingNode
}

// newSharedStatus returns the status with its nodes, which do not run yet.
func newSharedStatus(client dynamic.Interface, nodes int) *sharedStatus {
	status := &sharedStatus{}
	for i := range nodes {
		n := &reportingNode{name: fmt.Sprint("node-", i), status: status, changed: make(chan struct{}, 1)}
		n.reporter = newReporter(client, "test."+n.name, func(types.NamespacedName) int { return n.latest().otherFailures },
			slog.New(slog.DiscardHandler))
		status.nodes = append(status.nodes, n)
	}
	return status
}

// observe stores a state, and wakes the nodes to which the change matters.
func (s *sharedStatus) observe(object any) {
	latest := object.(*cachedConfiguration)
	s.mu.Lock()
	before := s.latest
	s.latest = latest
	s.mu.Unlock()
	for _, n := range s.nodes {
		if before == nil || differ(n.view(before), n.view(latest)) {
			n.wake()
		}
	}
}

// reportingNode reports failures of one Configuration, as the reconciler does.
type reportingNode struct {
	name     string
	reporter *reporter
	status   *sharedStatus
	changed  chan struct{}
	failing  atomic.Bool
}

// view returns what the node's own cache would have.
func (n *reportingNode) view(of *cachedConfiguration) *cachedConfiguration {
	own := &cachedConfiguration{Configuration: v0.Configuration{ObjectMeta: of.ObjectMeta}}
	for _, failure := range of.Status.DiscoveryFailures {
		if failure.Node == n.name {
			own.Status.DiscoveryFailures = append(own.Status.DiscoveryFailures, failure)
		}
	}
	own.otherFailures = len(of.Status.DiscoveryFailures) - len(own.Status.DiscoveryFailures)
	return own
}

func (n *reportingNode) latest() *cachedConfiguration {
	n.status.mu.Lock()
	defer n.status.mu.Unlock()
	if n.status.latest == nil {
		return nil
	}
	return n.view(n.status.latest)
}

func (n *reportingNode) run(ctx context.Context, t *testing.T) {
	timer := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.changed:
		case <-timer.C:
		}
		known := n.latest()
		if known == nil {
			continue
		}
		found := failures{node: n.name}
		if n.failing.Load() {
			found.add("onvif", "Secret login does not exist")
		}
		again, err := n.reporter.report(ctx, &known.Configuration, found.sorted())
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		if !again.IsZero() {
			timer.Reset(time.Until(again))
		}
	}
}

func (n *reportingNode) set(failing bool) {
	n.failing.Store(failing)
	n.wake()
}

func (n *reportingNode) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// One cause makes the agents of all nodes fail. Their reports fill neither the object
// nor the API server, and nothing of them is left when they are resolved.
func TestFailuresOfManyNodes(t *testing.T) {
	fulltest.Only(t)
	const many = v0.MaxDiscoveryFailures + 10
	config := apitest.Start(t)
	var writes atomic.Int64
	client := countingClient(t, config, &writes)
	namespace := apitest.Namespace(t, config)
	api := client.Resource(v0.ConfigurationResource).Namespace(namespace)
	if _, err := api.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Configuration", "metadata": map[string]any{"name": "cam"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": "onvif"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // another test may use the same name
		if err := api.Delete(context.WithoutCancel(t.Context()), "cam", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	nodes := startReportingNodes(t, client, namespace, many)

	// reported waits until the nodes that the status lists are as wanted.
	reported := func(what string, wanted func(listed []string) bool) *unstructured.Unstructured {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			object, err := api.Get(t.Context(), "cam", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			entries, _, _ := unstructured.NestedSlice(object.Object, "status", "discoveryFailures")
			var listed []string
			for _, entry := range entries {
				listed = append(listed, entry.(map[string]any)["node"].(string))
			}
			if wanted(listed) {
				return object
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d nodes are listed: %v", what, len(listed), listed)
			}
		}
	}
	for _, n := range nodes {
		n.set(true)
	}
	object := reported("a full list", func(listed []string) bool { return len(listed) == v0.MaxDiscoveryFailures })
	time.Sleep(2 * reportSpread) // those that find no room have decided
	t.Logf("%d requests for %d nodes", writes.Load(), many)
	if n := writes.Load(); n > 10*many {
		t.Errorf("%d requests for %d nodes, want at most ten each", n, many)
	}

	// Nodes recover, and others take their places.
	listed := managers(object)
	var recovered []string
	for _, n := range nodes {
		if len(recovered) < 3 && slices.Contains(listed, n.reporter.manager) {
			recovered = append(recovered, n.name)
			n.set(false)
		}
	}
	reported("others take the places", func(listed []string) bool {
		return len(listed) == v0.MaxDiscoveryFailures &&
			!slices.ContainsFunc(listed, func(node string) bool { return slices.Contains(recovered, node) })
	})
	for _, n := range nodes {
		n.set(false)
	}
	object = reported("all recover", func(listed []string) bool { return len(listed) == 0 })
	if left := managers(object); len(left) > 0 {
		t.Errorf("field managers are left: %v", left)
	}
}

// countingClient returns a client that counts its patches.
func countingClient(t *testing.T, config *rest.Config, writes *atomic.Int64) dynamic.Interface {
	t.Helper()
	counted := rest.CopyConfig(config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return apitest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodPatch {
				writes.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	client, err := dynamic.NewForConfig(counted)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func startReportingNodes(t *testing.T, client dynamic.Interface, namespace string, count int) []*reportingNode {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	status := newSharedStatus(client, count)
	for _, n := range status.nodes {
		running.Go(func() { n.run(ctx, t) })
	}
	all := informer.Objects(client.Resource(v0.ConfigurationResource).Namespace(namespace), nil,
		func(object *unstructured.Unstructured) (metav1.Object, error) {
			read := &cachedConfiguration{}
			return read, informer.Convert(object, &read.Configuration)
		})
	if _, err := all.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: status.observe, UpdateFunc: func(_, now any) { status.observe(now) },
	}); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { all.RunWithContext(ctx) })
	return status.nodes
}

// managers returns the field managers of nodes.
func managers(object *unstructured.Unstructured) []string {
	var names []string
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "test.") {
			names = append(names, entry.Manager)
		}
	}
	return names
}
