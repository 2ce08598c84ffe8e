package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"akri.sh/akri/agent/debug"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves a source until the test ends, and returns the state that it serves.
func serve(t *testing.T, source debug.Source) debug.State {
	t.Helper()
	server, err := debug.Listen("127.0.0.1:0", source, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + server.Address() + debug.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var state debug.State
	if err := json.NewDecoder(response.Body).Decode(&state); err != nil {
		t.Fatal(err)
	}
	return state
}

func source() debug.Source {
	return debug.Source{
		Node: "n", Ready: func() error { return nil },
		Handlers: func() []debug.Handler { return []debug.Handler{{Name: "udev", State: "Active", Streams: 1}} },
		Configurations: func() []debug.Configuration {
			return []debug.Configuration{{Namespace: "edge", Name: "cam", Devices: 2}}
		},
		Kubernetes: func() debug.Kubernetes { return debug.Kubernetes{APIServer: "v1.36.3", Pods: debug.PodsOfAPIServer} },
		Slots: func(context.Context) (debug.Slots, error) {
			var all debug.Slots
			all.Add(debug.Slot{Name: "cam-1-0", State: "free"})
			all.Add(debug.Slot{Name: "cam-1-1", State: "held", Owner: "n"})
			return all, nil
		},
	}
}

func TestState(t *testing.T) {
	state := serve(t, source())
	if state.Node != "n" || state.Version == "" || state.Started.After(state.Time) || state.NotReady != "" ||
		len(state.Handlers) != 1 || len(state.Configurations) != 1 || len(state.Errors) != 0 || state.Kubernetes.APIServer != "v1.36.3" {
		t.Errorf("got %+v", state)
	}
	slots := state.Slots
	if slots.Counts["free"] != 1 || slots.Counts["held"] != 1 || len(slots.List) != 1 || slots.List[0].Name != "cam-1-1" {
		t.Errorf("got slots %+v", slots)
	}
}

// The rest of the state is served although the serving half hangs.
func TestStateOfAStuckAgent(t *testing.T) {
	stuck := source()
	stuck.Ready = func() error { return errors.New("not synced") }
	stuck.Slots = func(ctx context.Context) (debug.Slots, error) {
		<-ctx.Done()
		return debug.Slots{}, errors.New("no response")
	}
	start := time.Now()
	state := serve(t, stuck)
	if state.Slots.Unavailable != "no response" || state.NotReady != "not synced" || len(state.Handlers) != 1 {
		t.Errorf("got %+v", state)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestSlotsAreBounded(t *testing.T) {
	var all debug.Slots
	for range 100_000 {
		all.Add(debug.Slot{Name: "cam-1-0", State: "taken", Owner: "m"})
	}
	for range 10_000 {
		all.AddInstance(debug.Instance{Name: "cam-1"})
		all.AddInstance(debug.Instance{Name: "cam-2", State: []string{"unpublished", "unrecorded", "left", "suspended", "restoring"}})
	}
	if len(all.Instances)+all.InstancesOmitted != 10_000 || all.InstancesOmitted == 0 {
		t.Errorf("%d Instances are listed, %d omitted", len(all.Instances), all.InstancesOmitted)
	}
	if all.Counts["taken"] != 100_000 || len(all.List)+all.Omitted != 100_000 {
		t.Errorf("%d are counted, %d listed, %d omitted", all.Counts["taken"], len(all.List), all.Omitted)
	}
	if encoded, err := json.Marshal(all); err != nil || len(encoded) > 1<<20 {
		t.Errorf("%d bytes, %v", len(encoded), err)
	}
}

func TestListen(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for address, want := range map[string]string{
		":8089":                "not a loopback address",
		"0.0.0.0:8089":         "not a loopback address",
		"10.0.0.1:8089":        "not a loopback address",
		"8089":                 "--debug-address",
		busy.Addr().String():   "--debug-address",
		"127.0.0.1:0":          "",
		"[::ffff:127.0.0.1]:0": "",
		"localhost:0":          "",
		"0":                    "",
		"":                     "",
	} {
		server, err := debug.Listen(address, source(), slog.New(slog.DiscardHandler))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", address, err)
			}
			server.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that contains %q", address, err, want)
		}
	}
}

func TestTurnedOff(t *testing.T) {
	server, err := debug.Listen("0", source(), slog.New(slog.DiscardHandler))
	if server != nil || err != nil || server.Run(t.Context()) != nil {
		t.Errorf("got %v, %v", server, err)
	}
}
