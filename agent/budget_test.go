package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"akri.sh/akri/agent"
	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/fulltest"
)

// One Configuration with as many devices and slots as the schema permits does not take the
// place of another namespace.
func TestTheLargestConfiguration(t *testing.T) {
	fulltest.Only(t)
	w := newWorld(t)
	n := w.node("a")
	address := freeAddress(t)
	n.startHandler(false)
	n.start("agent", func(ctx context.Context) error {
		return agent.Run(ctx, agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: address,
			Config: n.config, Logger: slog.New(slog.DiscardHandler),
		})
	})
	slots := func(count int) func() bool {
		return func() bool {
			_, metrics := get(address, "/metrics")
			return strings.Contains(metrics, fmt.Sprintf("akri_agent_slots{level=\"both\",state=\"free\"} %d\n", count))
		}
	}
	var ids []string
	for i := range 1000 {
		ids = append(ids, fmt.Sprintf("d%d", i))
	}
	w.configure("large", "descriptions: ["+strings.Join(ids, ",")+"]", func(spec map[string]any) { spec["capacity"] = int64(1000) })
	w.eventually("the slots of the namespace are offered", slots(10_000))
	w.eventually("the rest is refused", func() bool {
		found := w.failures("large")
		return len(found) == 1 && strings.Contains(found[0].Message, "may have 10000 slots on one node: reduce capacity")
	})
	other := newWorld(t)
	other.configure("small", "descriptions: [foo0]", nil)
	other.awaitDevices("foo0")
	other.eventually("its slots are offered, too", slots(10_002))

	w.configure("waiting", "descriptions: [late]", nil)
	w.eventually("the namespace has no slot left", func() bool {
		found := w.failures("waiting")
		return len(found) == 1 && strings.Contains(found[0].Message, `"late" is not published`)
	})
	w.remove("large")
	w.awaitDevices("late")
	w.eventually("it is no failure any longer", func() bool { return len(w.failures("waiting")) == 0 })
}

// A namespace with too many Configurations learns which of them are not served. Others are.
func TestTooManyConfigurations(t *testing.T) {
	fulltest.Only(t)
	w, other := newWorld(t), newWorld(t)
	n := w.node("a")
	n.startAgent()
	requests := make(chan map[string][]byte, 1000)
	n.start("handler", func(ctx context.Context) error {
		return discovery.Serve(ctx, "asker", asker{requests}, discovery.Options{Dir: n.directory, Logger: slog.New(slog.DiscardHandler)})
	})
	details := strings.Repeat("x", 256<<10)
	configure := func(w *world, name string) {
		w.configure(name, "", func(spec map[string]any) {
			spec["discoveryHandler"] = map[string]any{"name": "asker", "discoveryDetails": details}
		})
	}
	for i := range 17 { // 16 of them have 4 MiB
		configure(w, fmt.Sprintf("c%02d", i))
	}
	w.eventually("the newest is not served", func() bool {
		found := w.failures("c16")
		return len(found) == 1 && strings.Contains(found[0].Message, "have at most 4194304 bytes, and the oldest are served")
	})
	configure(other, "other")
	other.eventually("all others are", func() bool { return len(requests) >= 17 })
	if found := w.failures("c00"); len(found) != 0 {
		t.Errorf("the oldest has the failures %v", found)
	}
}
