package deviceplugin

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
	"akri.sh/akri/internal/apitest"
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

const camResource = "akri.sh/cam-1a2b3c"

// stubAllocator grants every slot that is not taken.
type stubAllocator struct {
	mu    sync.Mutex
	taken map[int]bool
	deny  func(int)
}

func (a *stubAllocator) allocate(_ context.Context, _ string, numbers []int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, number := range numbers {
		if a.taken[number] {
			a.deny(number)
			return slots.ErrTaken
		}
	}
	return nil
}

func (a *stubAllocator) prefer(_ context.Context, _ string, available, must []int, size int) ([]int, error) {
	return append(must, available[len(available)-size:]...), nil
}

// offering serves a device with three slots without a Server.
func offering(t *testing.T, k *kubelettest.Kubelet) (*service, *stubAllocator) {
	t.Helper()
	a := &stubAllocator{taken: map[int]bool{}}
	s := newService("cam-1a2b3c", a)
	a.deny = func(int) { s.setList([]slots.Health{{Slot: 0}, {Slot: 1, Healthy: true}, {Slot: 2, Healthy: true}}) }
	s.setDevice(device.Device{Properties: map[string]string{"URL": "rtsp://x"}})
	s.device.Instance.Name = "cam-1a2b3c"
	s.setList([]slots.Health{{Slot: 0, Healthy: true}, {Slot: 1, Healthy: true}, {Slot: 2, Healthy: true}})
	log := slog.New(slog.DiscardHandler)
	connected := kubelet.Plugin{Resource: camResource, Server: s, Registrar: kubelet.NewRegistrar(k.Dir(), log), Log: log}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { connected.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s, a
}

func healthy(n int) func(map[string]string) bool {
	return func(devices map[string]string) bool {
		count := 0
		for health := range maps.Values(devices) {
			if health == plugin.Healthy {
				count++
			}
		}
		return count == n
	}
}

func TestContainerGetsTheDevice(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, _ := offering(t, k)
	d := s.device
	d.Mounts = []device.Mount{{ContainerPath: "/in", HostPath: "/out", ReadOnly: true}}
	d.Files = []device.File{{HostPath: "/dev/video0"}}
	s.setDevice(d)
	k.Await(camResource, healthy(3))
	pod := kubelettest.Pod("p", camResource, 2)
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	responses := k.Responses(pod, "app")
	if len(responses) != 1 {
		t.Fatalf("%d responses, want one", len(responses))
	}
	r := responses[0]
	if want := map[string]string{"URL": "rtsp://x", "URL_1A2B3C": "rtsp://x"}; !maps.Equal(r.Envs, want) {
		t.Errorf("environment %v, want %v", r.Envs, want)
	}
	if len(r.Mounts) != 1 || r.Mounts[0].HostPath != "/out" || !r.Mounts[0].ReadOnly {
		t.Errorf("mounts %v", r.Mounts)
	}
	if len(r.Devices) != 1 || r.Devices[0].ContainerPath != "/dev/video0" || r.Devices[0].Permissions != "rw" {
		t.Errorf("devices %v", r.Devices)
	}
	if ids := k.IDs(pod, "app", camResource); ids[0] != "cam-1a2b3c-1" {
		t.Errorf("the preference was not followed: %v", ids)
	}
}

// TestUnlisted checks that an id absent from the last list is refused: granting it
// would crash the kubelet.
func TestUnlisted(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, _ := offering(t, k)
	k.Await(camResource, healthy(3))
	s.setList([]slots.Health{{Slot: 0, Healthy: true}})
	k.Await(camResource, healthy(1))
	for _, id := range []string{"cam-1a2b3c-2", "cam-1a2b3c-9", "door-1a2b3c-0", ""} {
		_, err := s.Allocate(
			t.Context(),
			&plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{id}}}},
		)
		if err == nil {
			t.Errorf("Allocate of %q succeeded", id)
		}
		_, err = s.GetPreferredAllocation(t.Context(), &plugin.PreferredAllocationRequest{
			ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: []string{id}, AllocationSize: 1}},
		})
		if err == nil {
			t.Errorf("GetPreferredAllocation of %q succeeded", id)
		}
	}
}

// TestListBeforeRefusal checks that the list that shows the slot as unhealthy was
// sent before Allocate is refused.
func TestListBeforeRefusal(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, a := offering(t, k)
	k.Await(camResource, healthy(3))
	a.taken[0] = true
	_, err := s.Allocate(
		t.Context(),
		&plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"cam-1a2b3c-0"}}}},
	)
	if err == nil || !strings.Contains(err.Error(), slots.ErrTaken.Error()) {
		t.Fatalf("refusal: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sentV != s.version {
		t.Errorf("version %d of the list was sent, want %d", s.sentV, s.version)
	}
}
