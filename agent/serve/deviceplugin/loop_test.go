package deviceplugin

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

// startingKubelet is a kubelet that starts when the test says so. It counts its
// lists.
type startingKubelet struct {
	*memoryKubelet
	starts chan struct{}
	lists  atomic.Int32
	during func() // called during each list, if not nil
}

// Run implements [plugins].
func (k *startingKubelet) Run(ctx context.Context, started func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.starts:
			started()
		}
	}
}

// List implements observer.Lister.
func (k *startingKubelet) List(ctx context.Context) (kubelet.Listing, error) {
	k.lists.Add(1)
	listing, err := k.memoryKubelet.List(ctx)
	if k.during != nil {
		k.during()
	}
	return listing, err
}

// alone returns a server without Instances, its kubelet, and how to run it, in a bubble.
func alone(t *testing.T, log *slog.Logger, registry *prometheus.Registry) (s *Server, k *startingKubelet, run func() (stop func())) {
	t.Helper()
	api := newMemoryAPI(t.Errorf)
	k = &startingKubelet{memoryKubelet: newMemoryKubelet("node-a", api), starts: make(chan struct{})}
	link := &memoryLink{node: "node-a", api: api, running: &sync.WaitGroup{}, sent: map[string]uint64{}}
	config := &rest.Config{Host: "http://api", Transport: connection{link, t.Context()}, QPS: -1}
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
	s, err = newServer(Options{
		NodeName: "node-a", FieldManager: "akri-agent", Client: client, Core: coreClient, Instances: store, Log: log,
		Metrics: registry,
	}, k, k)
	if err != nil {
		t.Fatal(err)
	}
	return s, k, func() func() {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := s.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
		return func() {
			cancel()
			running.Wait()
		}
	}
}

// A kubelet that has started may have lost Pods, so it is observed at once.
func TestKubeletStartIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, k, run := alone(t, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		defer run()()
		time.Sleep(maxInterval / 4) // after the observations of the beginning, long before the next
		before := k.lists.Load()
		time.Sleep(maxInterval / 4)
		if got := k.lists.Load(); before == 0 || got != before {
			t.Fatalf("%d lists, then %d: want some at the beginning only", before, got)
		}
		k.starts <- struct{}{}
		time.Sleep(2 * gatherTime)
		if got := k.lists.Load(); got != before+1 {
			t.Errorf("%d lists after the start of the kubelet, want one", got-before)
		}
	})
}

// A slot that is given during an observation is looked for soon: its Pod may have been
// refused since.
func TestGivenDuringAnObservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k, run := alone(t, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		name := types.NamespacedName{Namespace: "default", Name: "usb-0a11c8"}
		var started atomic.Bool
		give := sync.OnceFunc(func() {
			if _, err := s.allocate(t.Context(), slots.Resource{Name: name.Name}, []int{0}); err != nil {
				t.Errorf("Allocate: %v", err)
			}
		})
		k.during = func() {
			if started.Load() {
				give()
			}
		}
		s.Publish(types.NamespacedName{Namespace: "default", Name: "usb"}, []device.Device{
			{Instance: name, Configuration: "usb", ID: name.Name, Capacity: 1, Online: true},
		})
		defer run()()
		time.Sleep(maxInterval / 4) // after the observations of the beginning, long before the next
		before := k.lists.Load()
		started.Store(true)
		k.starts <- struct{}{}
		time.Sleep(maxInterval / 4)
		if got := k.lists.Load() - before; got < 2 {
			t.Errorf("%d lists after the start of the kubelet, want further ones after the slot was given", got)
		}
	})
}

// A violated invariant is found soon after something has happened. It is logged once, and
// stays in the metric.
func TestViolationIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, registry := &records{}, prometheus.NewRegistry()
		s, _, run := alone(t, slog.New(slog.NewTextHandler(log, nil)), registry)
		s.invariants = func(slots.State) []slots.Violation {
			return []slots.Violation{{Invariant: "I1", Where: "cam-aaaaaa-0", What: "two containers have the slot"}}
		}
		stop := run()
		for range 3 {
			s.queue.post(func() {})
			time.Sleep(checkInterval + time.Second)
		}
		stop()
		if lines := log.lines.String(); strings.Count(lines, "where=cam-aaaaaa-0") != 1 || !strings.Contains(lines, "invariant=I1") {
			t.Errorf("the log does not have the violation once:\n%s", lines)
		}
		if got := samples(t, registry, "akri_agent_invariant_violations"); len(got) != 1 || got[0] != "akri_agent_invariant_violations [I1] 1" {
			t.Errorf("the metric has %v, want one violation", got)
		}
	})
}
