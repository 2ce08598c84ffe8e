package agent_test

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/agent/discover/hostpaths"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/debugecho"
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

// An operator moves a handler from its DaemonSet into the agent, and back. Meanwhile two
// handlers have one name. No Instance changes.
func TestMoveOfAHandler(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	echo := embeddable.DebugEcho(true, a.availability)
	online := func() bool {
		devices := a.sink.of(w.namespace, "echo")
		return len(devices) == 2 && devices[0].Online && devices[1].Online
	}
	// answers reports whether the handler at a socket answers.
	answers := func(name string) bool {
		connection, err := net.Dial("unix", filepath.Join(a.directory, name))
		if err == nil {
			connection.Close()
		}
		return err == nil
	}

	stopAgent, stopOutside := a.startAgent(), a.startOutside(echo)
	w.configure("echo", "descriptions: [foo0, foo1]", nil)
	before := versions(w.awaitDevices("foo0", "foo1"))
	stopAgent()
	a.embedded, a.metrics, *a.sink = []embeddable.Handler{echo}, freeAddress(t), recorder{}
	stopAgent = a.startAgent()
	w.eventually("both handlers are used", func() bool {
		_, text := get(a.metrics, "/metrics")
		return strings.Contains(text, `akri_discovery_handlers{discovery_handler_name="debugEcho",state="Active"} 2`) && online()
	})
	for _, socket := range []string{debugecho.Name + ".sock", debugecho.Name + ".embedded"} {
		if !answers(socket) {
			t.Errorf("%s does not answer while both run", socket)
		}
	}
	_, text := get(a.metrics, "/metrics")
	if want := `akri_handler_devices{discovery_handler_name="debugEcho"} 2`; !strings.Contains(text, want) {
		t.Errorf("the metrics lack %s:\n%s", want, text)
	}
	if devices := a.sink.of(w.namespace, "echo"); len(devices) != 2 {
		t.Errorf("two handlers offer %v", devices)
	}

	stopOutside()
	w.eventually("only the handler in the agent is used", func() bool {
		_, text := get(a.metrics, "/metrics")
		return strings.Contains(text, `akri_discovery_streams{discovery_handler_name="debugEcho",state="open"} 1`) && online()
	})
	stopOutside = a.startOutside(echo)
	w.eventually("both handlers are used again", func() bool {
		_, text := get(a.metrics, "/metrics")
		return strings.Contains(text, `akri_discovery_streams{discovery_handler_name="debugEcho",state="open"} 2`)
	})
	stopAgent()
	a.embedded, *a.sink = nil, recorder{}
	stopAgent = a.startAgent()
	w.eventually("the handler in its own process is used", online)
	if after := versions(w.instances()); !maps.Equal(before, after) {
		t.Errorf("the move wrote Instances:\nbefore %v\nafter  %v", before, after)
	}
	a.setAvailability("OFFLINE") // the handler that is gone does not keep the devices
	w.awaitDevices()
	stopAgent()
	stopOutside()
}
