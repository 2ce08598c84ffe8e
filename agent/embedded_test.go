package agent_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/agent/discover/hostpaths"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
	"akri.sh/akri/discovery/udev"
)

// startOutside starts handlers as in processes of their own.
func (n *node) startOutside(handlers ...embeddable.Handler) (stop func()) {
	var stops []func()
	for _, each := range handlers {
		stops = append(stops, n.start(each.Name, func(ctx context.Context) error {
			log := slog.New(slog.DiscardHandler)
			return discovery.Serve(ctx, each.Name, each.New(monitor.New(prometheus.NewRegistry()), log),
				discovery.Options{Shared: each.Shared, Dir: n.directory, Logger: log})
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// camera returns the options of the handler udev on a machine with one camera.
func camera(t *testing.T) udev.Options {
	t.Helper()
	dir := t.TempDir()
	options := udev.Options{Sys: filepath.Join(dir, "sys"), Run: filepath.Join(dir, "udev")}
	device := filepath.Join(options.Sys, "devices/platform/cam/video4linux/video0")
	class := filepath.Join(options.Sys, "class/video4linux")
	for _, each := range []string{device, class, filepath.Join(options.Sys, "bus"), filepath.Join(options.Run, "data")} {
		if err := os.MkdirAll(each, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(device, "uevent"), []byte("MAJOR=81\nMINOR=0\nDEVNAME=video0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{filepath.Join(class, "video0"): device, filepath.Join(device, "subsystem"): class} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return options
}

const cameraID = "/devices/platform/cam/video4linux/video0"

// configureCamera creates a Configuration of udev, which finds the camera.
func (w *world) configureCamera() {
	w.configure("cam", "", func(spec map[string]any) {
		spec["discoveryHandler"] = map[string]any{"name": udev.Name, "discoveryDetails": `udevRules: ['SUBSYSTEM=="video4linux"']`}
	})
}

// specs returns what Instances say, by device.
func specs(instances map[string]*v0.Instance) map[string]any {
	all := map[string]any{}
	for id, instance := range instances {
		spec := instance.Spec
		spec.LastChangeTime = nil
		all[id] = []any{instance.Name, instance.Labels, instance.Annotations, spec}
	}
	return all
}

// A handler in the agent's process makes the same Instances as one in a process of its
// own, a restart of the agent changes none, and nothing is left when it has stopped.
func TestEmbeddedHandlers(t *testing.T) {
	for name, isShared := range map[string]bool{"shared": true, "local": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			onDev, err := hostpaths.Parse([]string{"udev=/dev"})
			if err != nil {
				t.Fatal(err)
			}
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), // connections are pooled for the process
				goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"))
			a := w.node("a")
			a.hostPaths.DeviceFiles = onDev
			handlers := []embeddable.Handler{embeddable.DebugEcho(isShared, a.availability), embeddable.UDEV(camera(t))}
			configure := func() map[string]*v0.Instance {
				w.configure("echo", "descriptions: [foo0, foo1]", nil)
				w.configureCamera()
				return w.awaitDevices("foo0", "foo1", cameraID)
			}

			stopAgent, stopHandlers := a.startAgent(), a.startOutside(handlers...)
			outside := specs(configure())
			w.remove("echo")
			w.remove("cam")
			w.awaitDevices()
			stopAgent()
			stopHandlers()

			b := w.node("a") // the same name, but nothing remembered
			b.hostPaths = a.hostPaths
			b.embedded = []embeddable.Handler{embeddable.DebugEcho(isShared, b.availability), handlers[1]}
			stopAgent = b.startAgent()
			instances := configure()
			if inside := specs(instances); !reflect.DeepEqual(inside, outside) {
				t.Errorf("handlers in the agent: %v\nhandlers outside: %v", inside, outside)
			}
			for range 2 {
				stopAgent()
				if after := versions(w.instances()); !maps.Equal(after, versions(instances)) {
					t.Errorf("an agent that stops wrote Instances:\nbefore %v\nafter  %v", versions(instances), after)
				}
				*b.sink = recorder{}
				stopAgent = b.startAgent()
				w.eventually("the new agent's handlers report the devices", func() bool {
					echo, cam := b.sink.of(w.namespace, "echo"), b.sink.of(w.namespace, "cam")
					return len(echo) == 2 && echo[0].Online && echo[1].Online && len(cam) == 1 && cam[0].Online
				})
			}
			if after := versions(w.instances()); !maps.Equal(after, versions(instances)) {
				t.Errorf("an agent that starts wrote Instances:\nbefore %v\nafter  %v", versions(instances), after)
			}
			b.setAvailability("OFFLINE")
			w.awaitDevices(cameraID)
			stopAgent()
		})
	}
}
