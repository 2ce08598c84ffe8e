package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"akri.sh/akri/agent"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/apitest"
)

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

// BenchmarkMessage measures the time from a handler's message to the last watch event
// that it causes.
func BenchmarkMessage(b *testing.B) {
	config := apitest.Start(b)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	namespace, directory := apitest.Namespace(b, config), b.TempDir()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{}, 2)
	handler := scripted{make(chan []discovery.Device)}
	log := slog.New(slog.DiscardHandler)
	go func() {
		agent.RunWithSink(ctx, agent.Options{
			NodeName: "node", HandlersDir: directory, KubeletDir: directory, MetricsAddress: "0", Config: config, Logger: log,
		}, &recorder{})
		ended <- struct{}{}
	}()
	go func() {
		discovery.Serve(ctx, "scripted", handler, discovery.Options{Dir: directory, Logger: log})
		ended <- struct{}{}
	}()
	defer func() { cancel(); <-ended; <-ended }()
	if _, err := client.Resource(v0.ConfigurationResource).Namespace(namespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v0.GroupVersion.String(), "kind": "Configuration", "metadata": map[string]any{"name": "bench"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": "scripted"}},
	}}, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	watcher, err := client.Resource(v0.InstanceResource).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer watcher.Stop()
	handler.lists <- nil

	for _, count := range []int{1, 50} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			var added, deleted []time.Duration
			for b.Loop() {
				var list []discovery.Device
				for i := range count {
					list = append(list, discovery.Device{ID: fmt.Sprint("d", i), Properties: map[string]string{"P": "v"}})
				}
				start := time.Now()
				handler.lists <- list
				awaitEvents(b, watcher, watch.Added, count)
				added = append(added, time.Since(start))
				time.Sleep(50 * time.Millisecond) // listing the free slots is not measured
				start = time.Now()
				handler.lists <- nil
				awaitEvents(b, watcher, watch.Deleted, count)
				deleted = append(deleted, time.Since(start))
			}
			reportTimes(b, "added", added)
			reportTimes(b, "deleted", deleted)
		})
	}
}

// awaitEvents waits for count watch events of one type.
func awaitEvents(b *testing.B, watcher watch.Interface, kind watch.EventType, count int) {
	b.Helper()
	limit := time.After(30 * time.Second)
	for count > 0 {
		select {
		case event := <-watcher.ResultChan():
			if event.Type == kind {
				count--
			}
		case <-limit:
			b.Fatalf("%d events %s are missing", count, kind)
		}
	}
}

// reportTimes reports the median and the 95th percentile.
func reportTimes(b *testing.B, name string, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, name+"-p50-ms")
	b.ReportMetric(times[len(times)*95/100].Seconds()*1000, name+"-p95-ms")
}
