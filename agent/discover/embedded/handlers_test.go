package embedded_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"akri.sh/akri/agent/discover/embedded"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/discovery"
	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/monitor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const limit = 30 * time.Second

// idle is a handler that finds nothing.
type idle struct{}

func (idle) Discover(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	if err := send(nil); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

func handlers(names ...string) []embeddable.Handler {
	var list []embeddable.Handler
	for _, name := range names {
		list = append(list, embeddable.Handler{
			Name: name, Shared: name == "onvif",
			New: func(metrics *monitor.Metrics, _ *slog.Logger) discovery.Handler {
				metrics.Failed("timeout")
				return idle{}
			},
		})
	}
	return list
}

// agent serves a registry in a new directory until the test ends.
func agent(t *testing.T) (handlers *registry.Registry, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "akri") // short: socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	known := registry.New(registry.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	listener, err := registry.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- known.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return known, dir
}

// await waits until an agent knows a handler, and returns its endpoint.
func await(t *testing.T, known *registry.Registry, name string) registry.Entry {
	t.Helper()
	changed := make(chan registry.Endpoint, 100)
	known.Subscribe(func(endpoint registry.Endpoint, _ bool) { changed <- endpoint })
	for timeout := time.After(limit); ; {
		if entries := known.Endpoints(name); len(entries) > 0 {
			return entries[0]
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s did not register", name)
		}
	}
}

func TestHandlersRegister(t *testing.T) {
	known, dir := agent(t)
	metrics := prometheus.NewPedanticRegistry()
	running := embedded.New(handlers("udev", "onvif"), dir, metrics, slog.New(slog.DiscardHandler))
	running.Start()
	defer running.Close()
	for _, want := range []registry.Entry{
		{Endpoint: registry.Endpoint{Name: "udev", Address: filepath.Join(dir, "udev.embedded")}},
		{Endpoint: registry.Endpoint{Name: "onvif", Address: filepath.Join(dir, "onvif.embedded")}, Shared: true},
	} {
		if got := await(t, known, want.Name); got != want {
			t.Errorf("%s registered as %+v, want %+v", want.Name, got, want)
		}
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "akri_handler_failures_total" {
				failures = append(failures, metric.String())
			}
		}
	}
	slices.Sort(failures)
	if len(failures) != 2 || !strings.Contains(failures[0], "onvif") || !strings.Contains(failures[1], "udev") {
		t.Errorf("the failures by handler are %v", failures)
	}
}

// A handler that cannot listen is tried again, and does not keep others from working.
func TestRetry(t *testing.T) {
	known, dir := agent(t)
	obstacle := filepath.Join(dir, "udev.embedded")
	if err := os.MkdirAll(filepath.Join(obstacle, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	running := embedded.New(handlers("udev", "onvif"), dir, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	running.Start()
	defer running.Close()
	await(t, known, "onvif")
	if entries := known.Endpoints("udev"); len(entries) != 0 {
		t.Fatalf("a handler that cannot listen has registered as %v", entries)
	}
	if err := os.RemoveAll(obstacle); err != nil {
		t.Fatal(err)
	}
	await(t, known, "udev")
}

func TestClose(t *testing.T) {
	for name, start := range map[string]bool{"started": true, "never started": false} {
		t.Run(name, func(t *testing.T) {
			// Without an agent, and without a directory, each handler is between two tries.
			running := embedded.New(handlers("udev", "onvif"), "/nowhere", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
			if start {
				running.Start()
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				running.Close()
			}()
			select {
			case <-closed:
			case <-time.After(limit):
				t.Error("Close does not return")
			}
		})
	}
}

func TestLeft(t *testing.T) {
	running := embedded.New(handlers("udev"), "/handlers", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	defer running.Close()
	for name, tc := range map[string]struct {
		endpoint registry.Endpoint
		want     bool
	}{
		"a handler of this process":             {registry.Endpoint{Name: "udev", Address: "/handlers/udev.embedded"}, false},
		"of an earlier process":                 {registry.Endpoint{Name: "onvif", Address: "/handlers/onvif.embedded"}, true},
		"in a DaemonSet":                        {registry.Endpoint{Name: "onvif", Address: "/handlers/onvif.sock"}, false},
		"in a DaemonSet, also in this process":  {registry.Endpoint{Name: "udev", Address: "/handlers/udev.sock"}, false},
		"another handler with a similar socket": {registry.Endpoint{Name: "doors", Address: "/handlers/onvif.embedded"}, false},
		"in another directory":                  {registry.Endpoint{Name: "onvif", Address: "/other/onvif.embedded"}, false},
		"on the network":                        {registry.Endpoint{Name: "onvif", Address: "/handlers/onvif.embedded", Network: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := running.Left(tc.endpoint); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
