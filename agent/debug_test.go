package agent_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"akri.sh/akri/agent"
	"akri.sh/akri/agent/debug"
)

// startDebugged starts an agent with a debug endpoint, and returns a function that
// reads its state.
func (n *node) startDebugged() func() debug.State {
	address, recent := freeAddress(n.t), &debug.Recent{}
	log := slog.New(recent.Handler(slog.NewTextHandler(n.t.Output(), nil)))
	n.start("agent", func(ctx context.Context) error {
		return agent.RunWithSink(ctx, agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: "0", DebugAddress: address,
			NetworkHandlers: n.network, Config: n.config, Logger: log, Recent: recent,
		}, n.sink)
	})
	return func() (state debug.State) {
		if code, text := get(address, debug.Path); code == http.StatusOK {
			if err := json.Unmarshal([]byte(text), &state); err != nil {
				n.t.Fatal(err)
			}
		}
		return state
	}
}

func TestDebugEndpoint(t *testing.T) {
	w := newWorld(t)
	n := w.node("n")
	read := n.startDebugged()
	w.configure("idle", "descriptions: [foo0]", func(spec map[string]any) {
		spec["discoveryHandler"].(map[string]any)["name"] = "not-on-this-node"
	})
	w.configure("echo", "descriptions: [foo0, foo1]", nil)
	w.configure("wrong", "descriptions: 3", nil)
	stop := n.startHandler(true)
	var state debug.State
	w.eventually("the state shows the devices and the failure", func() bool {
		state = read()
		var echo, wrong bool
		for _, served := range state.Configurations {
			switch {
			case served.Namespace != w.namespace:
			case served.Name == "idle":
				t.Fatalf("a Configuration is shown whose handler is not on the node: %+v", served)
			case served.Name == "echo":
				echo = served.Devices == 2 && served.Online == 2 && served.Instances == 2 && len(served.Failures) == 0
			case served.Name == "wrong":
				wrong = len(served.Failures) == 1 && served.Devices == 0
			}
		}
		return echo && wrong
	})
	w.eventually("the state shows the version of the API server", func() bool { state = read(); return state.Kubernetes.APIServer != "" })
	if state.Node != n.name || state.NotReady != "" || state.Version == "" {
		t.Errorf("got %+v", state)
	}
	if len(state.Handlers) != 1 || state.Handlers[0].State != "Active" || !state.Handlers[0].Shared || state.Handlers[0].OfflineSince != nil {
		t.Errorf("the handlers are %+v", state.Handlers)
	}
	stop()
	w.eventually("the handler is Offline", func() bool {
		state = read()
		return len(state.Handlers) == 1 && state.Handlers[0].State == "Offline" && !state.Handlers[0].OfflineSince.IsZero()
	})
}

// The state is served, with the log's warnings, before the API server answers.
func TestDebugEndpointWithoutAnAPIServer(t *testing.T) {
	w := &world{t: t, config: &rest.Config{Host: "http://127.0.0.1:1", QPS: -1}}
	n := w.node("n")
	if err := os.WriteFile(filepath.Join(n.directory, "agent-handlers.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := n.startDebugged()
	var state debug.State
	for end := time.Now().Add(deadline); state.Node == ""; state = read() {
		if time.Now().After(end) {
			t.Fatal("the endpoint does not answer")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(state.NotReady, "API server") {
		t.Errorf("the agent is ready: %+v", state)
	}
	if len(state.Errors) != 1 || !strings.Contains(state.Errors[0].Message, "stored discovery handlers") ||
		!strings.Contains(state.Errors[0].Details, "agent-handlers.json") {
		t.Errorf("the errors are %+v", state.Errors)
	}
}
