package deviceplugin

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/kubelettest"
)

// unconnected runs a server without an API server until stop is called.
func unconnected(t *testing.T, k *kubelettest.Kubelet, log *slog.Logger) (s *Server, stop func()) {
	t.Helper()
	return run(t, k, &rest.Config{Host: "http://127.0.0.1:1"}, log)
}

// run runs a server that is told nothing about Instances until stop is called.
func run(t *testing.T, k *kubelettest.Kubelet, config *rest.Config, log *slog.Logger) (s *Server, stop func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	coreClient, err := core.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	store, err := instances.New(client, "node-a", func(types.NamespacedName) {}, log)
	if err != nil {
		t.Fatal(err)
	}
	s, err = New(Options{
		NodeName: "node-a", KubeletDir: k.Dir(), FieldManager: "akri-agent.node-a", Client: client, Core: coreClient, Instances: store, Log: log,
		Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return s, stop
}

// records is a log that keeps its lines.
type records struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (r *records) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(line)
}

func (r *records) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.String()
}

func (r *records) contain(s string) bool { return strings.Contains(r.text(), s) }

// TestResourcesOfOneName checks that an Instance and a Configuration of the same name
// never share a resource: the kubelet would mix their IDs.
func TestResourcesOfOneName(t *testing.T) {
	const name = "cam-8120fe"
	instance, group := slots.Resource{Name: name}, slots.Resource{Name: name, Group: true}
	for first, of := range map[string]struct {
		first, second slots.Resource
		ids, then     []string
		warning       string
	}{
		"instance": {instance, group, []string{"cam-8120fe-0"}, []string{"0"}, "is the Instance's resource"},
		"group":    {group, instance, []string{"0"}, []string{"cam-8120fe-0"}, "is the Configuration's resource, not the Instance's"},
	} {
		t.Run(first+" first", func(t *testing.T) {
			k := kubelettest.Start(t, kubelettest.Options{})
			log := &records{}
			s, _ := unconnected(t, k, slog.New(slog.NewTextHandler(log, nil)))
			list := []slots.Health{{ID: 0, Healthy: true}}
			ids := func(want []string) func(map[string]string) bool {
				return func(devices map[string]string) bool { return slices.Equal(slices.Sorted(maps.Keys(devices)), want) }
			}
			s.queue.post(func() {
				s.advertise(of.first, list)
				s.advertise(of.second, list)
				s.advertise(of.second, list)
			})
			k.Await("akri.sh/"+name, ids(of.ids))
			if got, err := ask(t.Context(), s, func() int { return len(s.refused) }); err != nil || got != 1 {
				t.Errorf("%d resources are refused, want one (%v)", got, err)
			}
			s.queue.post(func() { s.withdraw(of.first) })
			k.Await("akri.sh/"+name, ids(of.then))
			s.queue.post(func() {
				s.advertise(of.first, list)
				s.withdraw(of.first) // of a resource that is refused
			})
			if got, err := ask(t.Context(), s, func() int { return len(s.refused) }); err != nil || got != 0 {
				t.Errorf("%d resources are refused, want none (%v)", got, err)
			}
			k.Await("akri.sh/"+name, ids(of.then))
			if !log.contain(reasonNameTaken) || !log.contain(of.warning) {
				t.Errorf("no warning %q in the log:\n%s", of.warning, log.text())
			}
		})
	}
}
