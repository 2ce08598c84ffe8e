package agent_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"akri.sh/akri/agent"
	"akri.sh/akri/agent/device"
	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/kubelettest"
)

func TestAgentStartsWithoutAnAPIServer(t *testing.T) {
	nowhere := &rest.Config{Host: "http://127.0.0.1:1", QPS: -1}
	w := &world{t: t, config: nowhere}
	n := w.node("n")
	address, probes := freeAddress(t), freeAddress(t)
	options := agent.Options{
		NodeName: "n", HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: address, ProbeAddress: probes,
		Config: nowhere, Logger: slog.New(slog.DiscardHandler),
	}
	stop := n.start("agent", func(ctx context.Context) error { return agent.RunWithSink(ctx, options, n.sink) })
	defer n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(
			ctx,
			"idle",
			asker{make(chan map[string][]byte, 1)},
			discovery.Options{Dir: n.directory, Logger: slog.New(slog.DiscardHandler)},
		)
	})()
	end := time.Now().Add(deadline)
	for {
		_, metrics := get(address, "/metrics")
		if strings.Contains(metrics, `akri_discovery_handlers{discovery_handler_name="idle",state="Waiting"} 1`) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the handler is not among the metrics:\n%s", metrics)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code, text := get(probes, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "API server") {
		t.Errorf("/readyz returns %d %q", code, text)
	}
	if code, _ := get(probes, "/healthz"); code != http.StatusOK {
		t.Errorf("/healthz returns %d", code)
	}
	if code, text := get(probes, "/metrics"); code != http.StatusNotFound {
		t.Errorf("/metrics at the address of the probes returns %d %q", code, text)
	}
	start := time.Now()
	stop()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the agent took %s to stop", took)
	}
}

func TestOneAgentPerNode(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	stopFirst := n.startAgent()
	n.startHandler(true)
	w.configure("echo", "descriptions: [foo0]", nil)
	w.awaitDevices("foo0")

	second := *n
	second.sink = &recorder{}
	second.startAgent()
	time.Sleep(100 * time.Millisecond) // the second agent must stay idle
	if len(second.sink.of(w.namespace, "echo")) != 0 {
		t.Fatal("two agents run on one node")
	}
	stopFirst()
	w.eventually("the second agent takes over", func() bool {
		devices := second.sink.of(w.namespace, "echo")
		return len(devices) == 1 && devices[0].Online
	})
}

func TestErrorsAtStart(t *testing.T) {
	base := agent.Options{
		NodeName:       "n",
		HandlersDir:    t.TempDir(),
		MetricsAddress: "0",
		Config:         &rest.Config{Host: "http://127.0.0.1:1"},
		Logger:         slog.New(slog.DiscardHandler),
	}
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for name, tc := range map[string]struct {
		change func(*agent.Options)
		want   string
	}{
		"no node":      {func(o *agent.Options) { o.NodeName = "" }, "NODE_NAME"},
		"no directory": {func(o *agent.Options) { o.HandlersDir = filepath.Join(o.HandlersDir, "none") }, "--discovery-handlers-dir"},
		"a busy port":  {func(o *agent.Options) { o.MetricsAddress = busy.Addr().String() }, "--metrics-bind-address"},
		"a busy port of probes": {
			func(o *agent.Options) { o.MetricsAddress, o.ProbeAddress = freeAddress(t), busy.Addr().String() }, "--health-probe-bind-address",
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := base
			tc.change(&options)
			if err := agent.RunWithSink(t.Context(), options, &recorder{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that contains %s", err, tc.want)
			}
		})
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func get(address, path string) (code int, text string) {
	response, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// stuckSink never returns from Publish once it has a device.
type stuckSink struct {
	device.Sink
	ended chan struct{}
}

func (s stuckSink) Publish(_ types.NamespacedName, devices []device.Device) {
	if len(devices) > 0 {
		<-s.ended
	}
}

// A loop that is stuck makes /healthz fail, so that the kubelet restarts the agent.
func TestHealthz(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	address := freeAddress(t)
	ended := make(chan struct{})
	stop := n.start("agent", func(ctx context.Context) error {
		return agent.RunWithSink(ctx, agent.WithWorkerLimit(agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: n.directory, ProbeAddress: address,
			Config: n.config, Logger: slog.New(slog.DiscardHandler),
		}, 100*time.Millisecond), stuckSink{ended: ended})
	})
	defer stop()
	defer close(ended)
	w.eventually("the agent is healthy", func() bool {
		code, _ := get(address, "/healthz")
		return code == http.StatusOK
	})
	n.startHandler(true)
	w.configure("echo", "descriptions: [foo0]", nil)
	w.eventually("the stuck worker is noticed", func() bool {
		code, text := get(address, "/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "reconciler")
	})
}

// A kubelet that does not show which slots are in use makes /healthz fail, too, until it
// shows them.
func TestHealthzOfAccounting(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	k := kubelettest.Start(t, kubelettest.Options{})
	refused := status.Error(codes.Unavailable, "refused")
	k.BreakList(func(context.Context) error { return refused })
	address := freeAddress(t)
	stop := n.start("agent", func(ctx context.Context) error {
		return agent.Run(ctx, agent.WithAccountingLimit(agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: k.Dir(), ProbeAddress: address,
			Config: n.config, Logger: slog.New(slog.DiscardHandler),
		}, 100*time.Millisecond))
	})
	defer stop()
	w.eventually("that no slot can be accounted for is noticed", func() bool {
		code, text := get(address, "/healthz")
		return code == http.StatusServiceUnavailable && strings.Contains(text, "accounting of slots")
	})
	k.BreakList(nil)
	w.eventually("the agent is healthy", func() bool {
		code, _ := get(address, "/healthz")
		return code == http.StatusOK
	})
}
