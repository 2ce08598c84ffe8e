package deviceplugin

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/kubelet"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
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

// stubAllocator grants every ID that is not taken.
type stubAllocator struct {
	mu    sync.Mutex
	taken map[int]bool
	deny  func(int)
	// devices are what containers get.
	devices           []device.Device
	calls             [][]int
	refusals, answers int
}

func (a *stubAllocator) allocate(_ context.Context, _ slots.Resource, ids []int) (*plugin.ContainerAllocateResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, ids)
	for _, id := range ids {
		if a.taken[id] {
			a.deny(id)
			return nil, slots.ErrTaken
		}
	}
	response, _ := respond(a.devices)
	return response, nil
}

func (a *stubAllocator) prefer(_ context.Context, _ slots.Resource, available, must []int, size int) ([]int, error) {
	return append(must, available[len(available)-size:]...), nil
}

func (a *stubAllocator) unlisted(_ slots.Resource, _ error, answer bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusals++
	if answer {
		a.answers++
	}
}

// offering serves a device with three slots without a Server.
func offering(t *testing.T, k *kubelettest.Kubelet) (*service, *stubAllocator) {
	t.Helper()
	return serving(t, k, slots.Resource{Name: "cam-1a2b3c"}, camera("cam-1a2b3c", map[string]string{"URL": "rtsp://x"}))
}

// serving serves a resource with three IDs without a Server.
func serving(t *testing.T, k *kubelettest.Kubelet, of slots.Resource, devices ...device.Device) (*service, *stubAllocator) {
	t.Helper()
	a := &stubAllocator{taken: map[int]bool{}, devices: devices}
	s := newService(of, a)
	a.deny = func(int) { s.setList([]slots.Health{{ID: 0}, {ID: 1, Healthy: true}, {ID: 2, Healthy: true}}) }
	s.setList([]slots.Health{{ID: 0, Healthy: true}, {ID: 1, Healthy: true}, {ID: 2, Healthy: true}})
	connected := kubelet.NewRegistrar(k.Dir(), slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { connected.Serve(ctx, v0.ResourceName(of.Name), s) })
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
	_, a := offering(t, k)
	a.devices[0].Mounts = []device.Mount{{ContainerPath: "/in", HostPath: "/out", ReadOnly: true}}
	a.devices[0].Files = []device.File{{HostPath: "/dev/video0"}}
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

// TestContainerGetsTwoDevices checks that the response to one request for two IDs of a
// group has both devices: the kubelet ignores further responses.
func TestContainerGetsTwoDevices(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	serving(t, k, slots.Resource{Name: "cam", Group: true},
		camera("cam-222222", map[string]string{"URL": "b"}), camera("cam-111111", map[string]string{"URL": "a"}))
	k.Await("akri.sh/cam", healthy(3))
	pod := kubelettest.Pod("p", "akri.sh/cam", 2)
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	responses := k.Responses(pod, "app")
	if len(responses) != 1 {
		t.Fatalf("%d responses, want one", len(responses))
	}
	if want := map[string]string{"URL": "a", "URL_111111": "a", "URL_222222": "b"}; !maps.Equal(responses[0].Envs, want) {
		t.Errorf("environment %v, want %v", responses[0].Envs, want)
	}
	if ids := k.IDs(pod, "app", "akri.sh/cam"); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("IDs %v: the preference was not followed", ids)
	}
}

// TestOneResponsePerContainer checks that each container request gets one response,
// also if it repeats an ID.
func TestOneResponsePerContainer(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, a := serving(t, k, slots.Resource{Name: "cam", Group: true}, camera("cam-111111", nil))
	k.Await("akri.sh/cam", healthy(3))
	requests := []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"2", "0", "2"}}, {DevicesIds: []string{"1"}}, {}}
	answer, err := s.Allocate(t.Context(), &plugin.AllocateRequest{ContainerRequests: requests})
	if err != nil || len(answer.GetContainerResponses()) != len(requests) {
		t.Fatalf("%v, %v", answer, err)
	}
	if want := [][]int{{0, 2}, {1}, {}}; !slices.EqualFunc(a.calls, want, slices.Equal) {
		t.Errorf("calls %v, want %v", a.calls, want)
	}
}

// TestIDs checks the IDs of both kinds of resources.
func TestIDs(t *testing.T) {
	instance, group := slots.Resource{Name: "cam-1a2b3c"}, slots.Resource{Name: "cam", Group: true}
	for id, of := range map[string]slots.Resource{"cam-1a2b3c-7": instance, "7": group} {
		if number, ok := of.Number(id); !ok || number != 7 || of.ID(number) != id {
			t.Errorf("%q is parsed as %d (%t) and formatted as %q", id, number, ok, of.ID(7))
		}
	}
	for _, id := range []string{"", "-1", "+1", "07", "cam-7", "cam-1a2b3c-7", "7 ", "99999999999999999999"} {
		if number, ok := group.Number(id); ok {
			t.Errorf("%q is parsed as %d", id, number)
		}
	}
}

// TestUnlisted checks that an id absent from the last list is refused: granting it
// would crash the kubelet. The refusal is reported.
func TestUnlisted(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, a := offering(t, k)
	k.Await(camResource, healthy(3))
	s.setList([]slots.Health{{ID: 0, Healthy: true}})
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
	if a.refusals != 8 || a.answers != 4 || len(a.calls) > 0 {
		t.Errorf("%d refusals reported, %d of them of an Allocate, and %d calls decided; want 8, 4 and 0", a.refusals, a.answers, len(a.calls))
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
