package kubelet

import (
	"context"
	"log/slog"
	"path/filepath"
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

func listed(devices map[string]string) bool { return devices["0"] == deviceplugin.Healthy }

// serve keeps a plugin connected to a kubelet until the test ends. timeout is how long
// the kubelet may take to connect.
func serve(t *testing.T, k *kubelettest.Kubelet, timeout time.Duration) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r := NewRegistrar(k.Dir(), log)
	r.timeout = timeout
	plugin := Plugin{Resource: camResource, Server: oneDevice{}, Registrar: r, Log: log}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx, func() {}) })
	running.Go(func() { plugin.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if paths, _ := filepath.Glob(filepath.Join(k.Dir(), "*", "akri-*")); len(paths) > 0 {
			t.Errorf("sockets are left behind: %v", paths)
		}
	})
}

// TestRegistrationPaths checks that a plugin reconnects through its registration
// path as soon as the kubelet restarts.
func TestRegistrationPaths(t *testing.T) {
	const (
		// The kubelet admits pods 0.9 s after it starts. A busy machine delays some
		// recoveries, so one of five must be in time.
		maxRecovery = 600 * time.Millisecond
		// During the outage the delay between two attempts grows to more than 3 s,
		// and an attempt has just failed. Only an attempt triggered by the kubelet's
		// start is in time, even on a busy machine.
		outage         = 3500 * time.Millisecond
		maxAfterOutage = 2 * time.Second
	)
	for name, tc := range map[string]struct {
		options kubelettest.Options
		timeout time.Duration
		dir     string
	}{
		"plugin watcher":        {kubelettest.Options{}, connectTimeout, "plugins_registry"},
		"registration":          {kubelettest.Options{NoWatcher: true}, connectTimeout, "device-plugins"},
		"watcher finds nothing": {kubelettest.Options{UnwatchedDir: true}, 300 * time.Millisecond, "device-plugins"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kubelettest.Start(t, tc.options)
			serve(t, k, tc.timeout)
			k.Await(camResource, listed)
			if socket := k.Socket(camResource); filepath.Base(filepath.Dir(socket)) != tc.dir {
				t.Fatalf("served on %s", socket)
			}
			restart := func(outage time.Duration) time.Duration {
				before := k.Socket(camResource)
				k.Stop()
				time.Sleep(outage)
				k.StartAgain()
				start := time.Now()
				k.Await(camResource, listed)
				took := time.Since(start)
				if after := k.Socket(camResource); (after == before) != (tc.dir == "plugins_registry") {
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
			if took := restart(outage); took > maxAfterOutage {
				t.Errorf("reconnected %s after an outage of %s: the kubelet's start triggered no attempt", took, outage)
			}
		})
	}
}

// TestStreamEnds checks that a stream closed by the kubelet, which never reopens it,
// is replaced by one on another socket.
func TestStreamEnds(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{NoWatcher: true})
	serve(t, k, connectTimeout)
	k.Await(camResource, listed)
	first := k.Socket(camResource)
	k.Drop(camResource)
	k.Await(camResource, listed)
	if k.Socket(camResource) == first {
		t.Error("the same socket name was registered twice")
	}
}
