package observer_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/serve/observer"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
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

// newObserver runs an observer of a kubelet. Unless the kubelet serves the Pods API, the
// Pods come from the API server of config; the node has the name of the test.
func newObserver(t *testing.T, k *kubelettest.Kubelet, config *rest.Config, configure ...func(*observer.Observer)) *observer.Observer {
	t.Helper()
	client, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := observer.NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := observer.New(k.Dir(), nodeOf(t), client, slog.New(slog.NewTextHandler(t.Output(), nil)), metrics)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range configure {
		f(w)
	}
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

// wanting is a container that requests devices.
func wanting(name, count string) map[string]any {
	return map[string]any{
		"name": name, "image": "x", "resources": map[string]any{"limits": map[string]any{"akri.sh/cam-1": count}},
	}
}

// createPod creates the Pod "p" of the test's node in the API server.
func createPod(t *testing.T, config *rest.Config, namespace string, spec map[string]any) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
	spec["nodeName"] = nodeOf(t)
	_, err = pods.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": spec,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// TestInitializing checks that no slot ends while the kubelet does not know its Pods
// and its list is empty.
func TestInitializing(t *testing.T) {
	fulltest.Only(t)
	t.Parallel()
	// Longer than it takes to give up a Pods API that does not serve.
	const warmup = 15 * time.Second
	config := apitest.Start(t)
	k := kubelettest.Start(t, kubelettest.Options{Warmup: warmup})
	started := time.Now()
	w := newObserver(t, k, config)
	until(t, w, false)
	until(t, w, true)
	if took := time.Since(started); took < warmup {
		t.Errorf("the slot ended only %s after the kubelet's start", took)
	}
	k.Stop()
	if o, err := w.Observe(t.Context(), own); err == nil && len(o.Open) == 0 {
		t.Errorf("without a kubelet: %+v", o)
	}
}

// TestWithoutPodsAPI checks that a Pod in the API server that requests the resource
// keeps the slot, even for some time after it vanished.
func TestWithoutPodsAPI(t *testing.T) {
	t.Parallel()
	config := apitest.Start(t)
	namespace := apitest.Namespace(t, config)
	pods := createPod(t, config, namespace, map[string]any{"containers": []any{wanting("app", "1")}})
	w := newObserver(t, kubelettest.Start(t, kubelettest.Options{NoPodsAPI: true}), config)
	until(t, w, false)
	zero := int64(0)
	if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	if took := until(t, w, true); took < 5*time.Second {
		t.Errorf("a force-deleted pod held its slot only for %s", took)
	}
}
