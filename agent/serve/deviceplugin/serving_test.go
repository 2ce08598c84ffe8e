package deviceplugin

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/device"
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

// stubBroker grants everything, or refuses what is taken.
type stubBroker struct {
	mu    sync.Mutex
	taken map[int]bool
	deny  func(int)
}

func (b *stubBroker) allocate(_ context.Context, _ string, numbers []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, number := range numbers {
		if b.taken[number] {
			b.deny(number)
			return slots.ErrTaken
		}
	}
	return nil
}

func (b *stubBroker) prefer(_ context.Context, _ string, available, must []int, size int) ([]int, error) {
	return append(must, available[len(available)-size:]...), nil
}

// offering serves a device of three slots without a Node.
func offering(t *testing.T, k *kubelettest.Kubelet) (*service, *stubBroker, *registrar) {
	t.Helper()
	b := &stubBroker{taken: map[int]bool{}}
	s := newService("cam-1a2b3c", b)
	b.deny = func(int) { s.setList([]slots.Health{{Slot: 0}, {Slot: 1, Healthy: true}, {Slot: 2, Healthy: true}}) }
	s.setDevice(device.Device{Properties: map[string]string{"URL": "rtsp://x"}})
	s.device.Instance.Name = "cam-1a2b3c"
	s.setList([]slots.Health{{Slot: 0, Healthy: true}, {Slot: 1, Healthy: true}, {Slot: 2, Healthy: true}})
	r := newRegistrar(k.Dir(), slog.New(slog.DiscardHandler))
	r.patience = 300 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.run(ctx, func() {}) })
	l := &lifecycle{resource: camResource, service: s, registrar: r, log: slog.New(slog.DiscardHandler)}
	running.Go(func() { l.run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if paths, _ := filepath.Glob(filepath.Join(k.Dir(), "*", "akri-*")); len(paths) > 0 {
			t.Errorf("sockets are left behind: %v", paths)
		}
	})
	return s, b, r
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

func TestRoads(t *testing.T) {
	for name, tc := range map[string]struct {
		options kubelettest.Options
		folder  string
	}{
		"plugin watcher":             {kubelettest.Options{}, "plugins_registry"},
		"registration":               {kubelettest.Options{NoWatcher: true}, "device-plugins"},
		"a watcher that sees us not": {kubelettest.Options{DeafWatcher: true}, "device-plugins"},
	} {
		t.Run(name, func(t *testing.T) {
			k := kubelettest.Start(t, tc.options)
			offering(t, k)
			k.Await(camResource, healthy(3))
			if socket := k.Socket(camResource); filepath.Base(filepath.Dir(socket)) != tc.folder {
				t.Fatalf("served on %s", socket)
			}
			before := k.Socket(camResource)
			k.Restart()
			start := time.Now()
			k.Await(camResource, healthy(3))
			if took := time.Since(start); took > 600*time.Millisecond {
				t.Errorf("back %s after the kubelet's start; pods are admitted after 0.9 s", took)
			}
			if after := k.Socket(camResource); (after == before) != (tc.folder == "plugins_registry") {
				t.Errorf("before the restart served on %s, after it on %s", before, after)
			}
		})
	}
}

func TestContainerGetsTheDevice(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, _, _ := offering(t, k)
	d := s.device
	d.Mounts = []device.Mount{{ContainerPath: "/in", HostPath: "/out", ReadOnly: true}}
	d.Nodes = []device.Node{{HostPath: "/dev/video0"}}
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

// TestUnlisted: an id absent from the last list is refused, for an answer would
// kill the kubelet.
func TestUnlisted(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, _, _ := offering(t, k)
	k.Await(camResource, healthy(3))
	s.setList([]slots.Health{{Slot: 0, Healthy: true}})
	k.Await(camResource, healthy(1))
	for _, id := range []string{"cam-1a2b3c-2", "cam-1a2b3c-9", "door-1a2b3c-0", ""} {
		_, err := s.Allocate(t.Context(), &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{id}}}})
		if err == nil {
			t.Errorf("Allocate of %q is granted", id)
		}
		_, err = s.GetPreferredAllocation(t.Context(), &plugin.PreferredAllocationRequest{
			ContainerRequests: []*plugin.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: []string{id}, AllocationSize: 1}},
		})
		if err == nil {
			t.Errorf("a preference for %q is given", id)
		}
	}
}

// TestListBeforeRefusal: when the refusal arrives the list with the slot
// unhealthy has been sent.
func TestListBeforeRefusal(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, b, _ := offering(t, k)
	k.Await(camResource, healthy(3))
	b.taken[0] = true
	_, err := s.Allocate(t.Context(), &plugin.AllocateRequest{ContainerRequests: []*plugin.ContainerAllocateRequest{{DevicesIds: []string{"cam-1a2b3c-0"}}}})
	if err == nil || !strings.Contains(err.Error(), slots.ErrTaken.Error()) {
		t.Fatalf("refusal: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sentV != s.version {
		t.Errorf("the list of version %d is sent, want %d", s.sentV, s.version)
	}
}

// TestStreamEnds: a stream that the kubelet drops is never opened again by it.
func TestStreamEnds(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{NoWatcher: true})
	offering(t, k)
	k.Await(camResource, healthy(3))
	first := k.Socket(camResource)
	k.Drop(camResource)
	k.Await(camResource, healthy(3))
	if k.Socket(camResource) == first {
		t.Error("the same socket name was registered twice")
	}
}

func TestRemoveSockets(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{pluginsDir, devicesDir} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stale, err := socketPath(filepath.Join(dir, pluginsDir), camResource)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, devicesDir, "other.sock")
	for _, path := range []string{stale, foreign} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		_ = l.Close()
	}
	if err := removeSockets(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("our socket is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("another plugin's socket: %v", err)
	}
}

func TestSocketPath(t *testing.T) {
	a, err := socketPath("/var/lib/kubelet/"+pluginsDir, strings.Repeat("x", 300))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := socketPath("/var/lib/kubelet/"+pluginsDir, strings.Repeat("x", 300)); a == b {
		t.Error("a name is used twice")
	}
	if _, err := socketPath("/"+strings.Repeat("d", 90), "r"); err == nil {
		t.Error("a path that no address holds is accepted")
	}
}
