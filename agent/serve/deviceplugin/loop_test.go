package deviceplugin

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/core"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/instances"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
)

// startingKubelet is a kubelet without Pods that starts when the test says so. It counts its
// lists.
type startingKubelet struct {
	starts chan struct{}
	lists  atomic.Int32
	during func() // called during each list, if not nil
}

// Clean implements [plugins].
func (k *startingKubelet) Clean() error { return nil }

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

// Serve implements [plugins].
func (k *startingKubelet) Serve(ctx context.Context, _ string, _ plugin.DevicePluginServer) {
	<-ctx.Done()
}

// List implements observer.Lister.
func (k *startingKubelet) List(context.Context) (kubelet.Listing, error) {
	k.lists.Add(1)
	if k.during != nil {
		k.during()
	}
	return nil, nil
}

// Close implements observer.Lister.
func (k *startingKubelet) Close() error { return nil }

// alone returns a server without an API server, its kubelet, and how to run it, in a
// bubble.
func alone(t *testing.T, log *slog.Logger, registry *prometheus.Registry) (s *Server, k *startingKubelet, run func() (stop func())) {
	t.Helper()
	k = &startingKubelet{starts: make(chan struct{})}
	config := &rest.Config{Host: "http://127.0.0.1:1"}
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

var usb = types.NamespacedName{Namespace: "default", Name: "usb"}

// A device that is offline or gone is offered to no further container, and then forgotten.
func TestOnlyOnlineDevicesAreOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, run := alone(t, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		defer run()()
		one := device.Device{Instance: types.NamespacedName{Namespace: "default", Name: "usb-0a11c8"}, Configuration: usb.Name, Capacity: 2}
		online := one
		online.Online = true
		for _, tc := range []struct {
			list []device.Device
			want int // healthy IDs
		}{{[]device.Device{online}, 2}, {[]device.Device{one}, 0}, {[]device.Device{online}, 2}, {nil, 0}} {
			s.Publish(usb, tc.list)
			if ids, err := s.prefer(t.Context(), slots.Resource{Name: one.Instance.Name}, []int{1, 0}, nil, 1); !slices.Equal(ids, []int{0}) {
				t.Errorf("the preferred IDs are %v (%v)", ids, err)
			}
			got, err := ask(t.Context(), s, func() (healthy int) {
				for _, h := range s.resources[one.Instance.Name].list {
					if h.Healthy {
						healthy++
					}
				}
				return healthy
			})
			if err != nil || got != tc.want {
				t.Errorf("%d IDs are healthy after %+v (%v), want %d", got, tc.list, err, tc.want)
			}
		}
		time.Sleep(slots.Quiet + time.Second)
		if known, err := ask(t.Context(), s, func() int { return len(s.devices.known) + len(s.resources) }); err != nil || known > 0 {
			t.Errorf("the device that has gone is not forgotten (%v)", err)
		}
	})
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
		s.Publish(usb, []device.Device{{Instance: name, Configuration: usb.Name, ID: name.Name, Capacity: 1, Online: true}})
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

// Triggers lead to some observations a second, however many there are.
func TestTriggersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k, run := alone(t, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		defer run()()
		time.Sleep(maxInterval / 4) // after the observations of the beginning
		before := k.lists.Load()
		const seconds = 10
		for range seconds * 100 {
			s.observeSoon()
			time.Sleep(10 * time.Millisecond)
		}
		if got := k.lists.Load() - before; got < seconds || got > burst+seconds*maxRate+3 {
			t.Errorf("%d lists in %d s", got, seconds)
		}
	})
}
