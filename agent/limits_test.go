package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/fulltest"
)

// A handler that reports another value with each message makes the agent write once per
// second; the last value is written in the end.
func TestWritesAreBounded(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	send := a.startScripted("pace", 1)
	report := func(value string) {
		send(discovery.Device{ID: "meter", Properties: map[string]string{"VALUE": value}})
	}
	report("first")
	w.awaitDevices("meter")
	before := w.instances()["meter"].Generation // counts the writes of the spec
	began := time.Now()
	for i := 0; time.Since(began) < 2500*time.Millisecond; i++ {
		report(fmt.Sprint(i))
	}
	report("last")
	w.eventually("the last value is written", func() bool { return w.instances()["meter"].Spec.BrokerProperties["VALUE"] == "last" })
	took := time.Since(began) // the agent reads what such a handler has sent with a delay
	writes := int(w.instances()["meter"].Generation - before)
	if most := int(took/time.Second) + 3; writes > most || writes < 2 {
		t.Errorf("%d writes in %s, want from 2 to %d", writes, took, most)
	}
}

// restless is a handler that sends a list every 10 ms.
type restless struct{ next func() []discovery.Device }

func (h restless) Discover(ctx context.Context, _ discovery.Request, send func([]discovery.Device) error) error {
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if err := send(h.next()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Whatever one Configuration wants, its failure says which limit that exceeds, and the
// devices of another one are offered within a second.
func TestOneConfigurationLeavesOthersTheirPlace(t *testing.T) {
	fulltest.Only(t)
	list := func(first, count int, value string) (devices []discovery.Device) {
		for i := range count {
			devices = append(devices, discovery.Device{ID: fmt.Sprintf("d%d", first+i), Properties: map[string]string{"VALUE": value}})
		}
		return devices
	}
	sent := 0
	for name, test := range map[string]struct {
		capacity int
		next     func() []discovery.Device
		offered  int // at least
		says     string
	}{
		"many devices": {1, func() []discovery.Device { return list(0, 10_000, "v") }, 1000, "a Configuration may have 1000 devices on one node"},
		"many slots":   {1000, func() []discovery.Device { return list(0, 1000, "v") }, 10, "a Configuration may have 10000 slots on one node"},
		"new devices": {1, func() []discovery.Device { sent += 500; return list(sent, 500, "v") }, 0,
			"(the Instances of a Configuration 50 times a second)"},
		"changes": {1, func() []discovery.Device { sent++; return list(0, 500, fmt.Sprint(sent)) }, 500,
			"change more often than the agent writes them"},
	} {
		t.Run(name, func(t *testing.T) {
			greedy, other := newWorld(t), newWorld(t)
			n := other.node("n")
			n.startAgent()
			send := n.startScripted("modest", 1)
			modest := func() (took time.Duration) {
				id, began := fmt.Sprint("modest", time.Now().UnixNano()), time.Now()
				send(discovery.Device{ID: id})
				for ; ; time.Sleep(5 * time.Millisecond) {
					if known := n.sink.of(other.namespace, "modest"); len(known) == 1 && known[0].ID == id {
						return time.Since(began)
					}
					if time.Since(began) > deadline {
						t.Fatal("the device of another Configuration is not offered")
					}
				}
			}
			alone := modest()
			n.start("handler", func(ctx context.Context) error {
				return discovery.Serve(ctx, "greedy", restless{test.next}, discovery.Options{Dir: n.directory, Logger: slog.New(slog.DiscardHandler)})
			})
			greedy.configure("greedy", "", func(spec map[string]any) {
				spec["capacity"], spec["discoveryHandler"] = int64(test.capacity), map[string]any{"name": "greedy"}
			})
			var took []time.Duration
			message := ""
			for began := time.Now(); !strings.Contains(message, test.says); time.Sleep(time.Second) {
				took = append(took, modest())
				if found := greedy.failures("greedy"); len(found) == 1 {
					message = found[0].Message
				}
				if time.Since(began) > 3*time.Minute {
					t.Fatalf("the failure is %q, want %q", message, test.says)
				}
			}
			other.eventually("its devices are offered as far as possible", func() bool {
				return len(n.sink.of(greedy.namespace, "greedy")) >= test.offered
			})
			took = append(took, modest())
			slices.Sort(took)
			var memory runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&memory)
			t.Logf("the device of another Configuration is offered after %s alone, then %s (median of %d), at most %s; heap %d MiB; %s",
				alone, took[len(took)/2], len(took), took[len(took)-1], memory.HeapAlloc>>20, message)
			if median := took[len(took)/2]; median > time.Second {
				t.Errorf("the device of another Configuration is offered after %s", median)
			}
		})
	}
}
