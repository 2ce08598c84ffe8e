package properties

import (
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/apitest"
	"akri.sh/akri/internal/fulltest"
)

// Users who may write ConfigMaps choose what it takes to decode them: one with many short
// keys takes ten times its size. However many there are, and however many change at once,
// they are decoded one at a time. The API server needs seconds to store one of them, so
// that only "make full" uses such ones.
func TestMemoryOfObjects(t *testing.T) {
	const objects, maxHeap = 12, 24 << 20
	keys := 10
	if fulltest.Enabled() {
		keys = 50_000
	}
	config := apitest.Start(t)
	namespace := apitest.Namespace(t, config)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	configMaps := clients.CoreV1().ConfigMaps(namespace)
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cam"}}
	handler := &configuration.Spec.DiscoveryHandler
	hostile := &corev1.ConfigMap{Data: map[string]string{"wanted": "old"}}
	for i := range keys {
		hostile.Data[fmt.Sprintf("%05d", i)] = ""
	}
	for i := range objects {
		hostile.Name = fmt.Sprintf("c%d", i)
		if _, err := configMaps.Create(t.Context(), hostile, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		handler.DiscoveryProperties = append(handler.DiscoveryProperties, v0.DiscoveryProperty{
			Name:      hostile.Name,
			ValueFrom: &v0.DiscoveryPropertySource{ConfigMapKeyRef: &v0.KeyReference{Name: hostile.Name, Key: "wanted"}},
		})
	}
	hostile = nil

	before, peak := apitest.LiveHeap(), apitest.PeakHeap()
	changed := make(chan struct{}, 1)
	watcher, mostAtATime := start(t, config, changed)
	await := func(want string) {
		t.Helper()
		for end := time.After(30 * time.Second); ; {
			resolved, count := watcher.Resolve(configuration), 0
			for _, property := range resolved.Properties {
				if string(property.Vec) == want {
					count++
				}
			}
			if count == objects {
				return
			}
			select {
			case <-changed:
			case <-end:
				t.Fatalf("%d of %d values are %q", count, objects, want)
			}
		}
	}
	await("old")
	var patching sync.WaitGroup
	for i := range objects {
		patching.Go(func() {
			patch := []byte(`{"data":{"wanted":"new"}}`)
			if _, err := configMaps.Patch(t.Context(), fmt.Sprintf("c%d", i), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	patching.Wait()
	await("new")
	if grown := peak() - before; grown > maxHeap {
		t.Errorf("%d ConfigMaps take %d MiB, want at most %d", objects, grown>>20, maxHeap>>20)
	}
	if most := mostAtATime(); most != 1 {
		t.Errorf("%d objects are read at a time, want 1", most)
	}
}

// start starts a watcher, and returns how many objects it has read at a time, at most.
func start(t *testing.T, config *rest.Config, changed chan<- struct{}) (*Watcher, func() int64) {
	var reading, most atomic.Int64
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(request *http.Request) (*http.Response, error) {
			if !request.URL.Query().Has("watch") {
				now := reading.Add(1)
				defer reading.Add(-1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
			}
			return next.RoundTrip(request)
		})
	})
	client, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	watcher := NewWatcher(client, false, func(types.NamespacedName) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(watcher.Close)
	return watcher, most.Load
}
