package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/internal/kubelettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneDevice is a device plugin whose list never changes.
type oneDevice struct {
	deviceplugin.UnimplementedDevicePluginServer
}

func (oneDevice) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

func (oneDevice) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(
		&deviceplugin.ListAndWatchResponse{Devices: []*deviceplugin.Device{{ID: "0", Health: deviceplugin.Healthy}}},
	); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (oneDevice) Allocate(_ context.Context, r *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	return &deviceplugin.AllocateResponse{ContainerResponses: make([]*deviceplugin.ContainerAllocateResponse, len(r.ContainerRequests))}, nil
}

func listed(devices map[string]string) bool { return devices["0"] == deviceplugin.Healthy }

// serve keeps a plugin connected to a kubelet until the test ends. timeout is how long
// the kubelet may take to connect.
func serve(t *testing.T, k *kubelettest.Kubelet, timeout time.Duration, configure ...func(*Registrar)) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r := NewRegistrar(k.Dir(), log)
	r.timeout = timeout
	for _, f := range configure {
		f(r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := r.Run(ctx, func() {}); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() { r.Serve(ctx, camResource, oneDevice{}) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if paths, _ := filepath.Glob(filepath.Join(k.Dir(), "*", "akri-*")); len(paths) > 0 {
			t.Errorf("sockets are left behind: %v", paths)
		}
	})
}

// outage is how long tests stop the kubelet.
const outage = 3500 * time.Millisecond

// TestRestarts checks that a kubelet that restarts is connected before it admits Pods,
// however long it was away.
func TestRestarts(t *testing.T) {
	const (
		// The kubelet admits Pods 0.9 s after it starts. A busy machine delays some
		// recoveries, so one of several must be in time.
		maxRecovery    = 600 * time.Millisecond
		maxAfterOutage = 2 * time.Second
	)
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	serve(t, k, connectTimeout)
	k.Await(camResource, listed)
	restart := func(outage time.Duration) time.Duration {
		before := k.Socket(camResource)
		k.Stop()
		time.Sleep(outage)
		k.StartAgain()
		start := time.Now()
		k.Await(camResource, listed)
		took := time.Since(start)
		if after := k.Socket(camResource); after != before {
			t.Errorf("before the restart served on %s, after it on %s", before, after)
		}
		return took
	}
	fastest := restart(0)
	for attempt := 1; attempt < 5 && fastest > maxRecovery; attempt++ {
		fastest = min(fastest, restart(0))
	}
	if fastest > maxRecovery {
		t.Errorf("reconnected %s after the kubelet's start; pods are admitted after 0.9 s", fastest)
	}
	fastest = restart(outage)
	for attempt := 1; attempt < 3 && fastest > maxAfterOutage; attempt++ {
		fastest = min(fastest, restart(outage))
	}
	if fastest > maxAfterOutage {
		t.Errorf("reconnected %s after an outage of %s", fastest, outage)
	}
}

// TestStreamEnds checks that a stream that the kubelet has closed, which it does not reopen,
// is replaced by one on another socket.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	serve(t, k, 500*time.Millisecond)
	k.Await(camResource, listed)
	first := k.Socket(camResource)
	k.Drop(camResource)
	k.Await(camResource, listed)
	if k.Socket(camResource) == first {
		t.Error("the same socket name was registered twice")
	}
}

// TestSocketDeleted checks that a socket deleted by hand, which the kubelet's plugin
// watcher treats as the plugin's end, is replaced at once.
func TestSocketDeleted(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		k := kubelettest.Start(t, kubelettest.Options{})
		serve(t, k, connectTimeout)
		k.Await(camResource, listed)
		first := k.Socket(camResource)
		if down {
			k.Stop()
		}
		if err := os.Remove(first); err != nil {
			t.Fatal(err)
		}
		if down {
			k.StartAgain()
		}
		start := time.Now()
		k.Await(camResource, func(devices map[string]string) bool { return listed(devices) && k.Socket(camResource) != first })
		if took := time.Since(start); took > connectTimeout/2 {
			t.Errorf("kubelet down %v: reconnected after %s", down, took)
		}
	}
}

// TestPatience checks that a kubelet that has just started has the whole time to find a
// socket that it used before.
func TestPatience(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second
	k := kubelettest.Start(t, kubelettest.Options{ScanDelay: timeout * 3 / 4})
	serve(t, k, timeout)
	k.Await(camResource, listed)
	first := k.Socket(camResource)
	k.Stop()
	time.Sleep(timeout / 2) // the time would be up before the new kubelet looks for sockets
	k.StartAgain()
	k.Await(camResource, listed)
	if k.Socket(camResource) != first {
		t.Error("the socket was given up before the kubelet looked for it")
	}
}

// TestDirectoryReplaced checks that the agent follows when the directory of the plugin watcher
// is replaced. A kubelet that runs does not look there before it restarts, which the log says.
func TestDirectoryReplaced(t *testing.T) {
	t.Parallel()
	k := kubelettest.Start(t, kubelettest.Options{})
	log := &lines{}
	serve(t, k, 300*time.Millisecond, func(r *Registrar) { r.log = slog.New(slog.NewTextHandler(log, nil)) })
	k.Await(camResource, listed)
	first := k.Socket(camResource)
	dir := filepath.Join(k.Dir(), pluginsDir)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !log.contain("restart the kubelet"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the log does not say that the kubelet must restart")
		}
	}
	k.Restart()
	k.Await(camResource, func(devices map[string]string) bool { return listed(devices) && k.Socket(camResource) != first })
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) contain(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// TestNameTooLong checks that a resource that the kubelet refuses is logged once, instead of
// being offered again and again.
func TestNameTooLong(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	var log strings.Builder
	r := NewRegistrar(k.Dir(), slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	r.Serve(ctx, "akri.sh/"+strings.Repeat("x", 64), oneDevice{})
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "use a shorter name") {
		t.Errorf("log:\n%s", log.String())
	}
}
