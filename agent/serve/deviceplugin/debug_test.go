package deviceplugin_test

import (
	"context"
	"testing"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/debug"
	"akri.sh/akri/internal/kubelettest"
)

// The state of the slots shows both nodes' use of a device.
func TestDebugSlots(t *testing.T) {
	w := newWorld(t)
	w.instance("cam-dbdbdb", "node-a", "node-b")
	ka, kb := kubelettest.Start(t, kubelettest.Options{}), kubelettest.Start(t, kubelettest.Options{})
	a, b := w.agent("node-a", ka), w.agent("node-b", kb)
	for _, one := range []*agent{a, b} {
		one.publish(w.device("cam-dbdbdb", 3))
	}
	ka.Await("akri.sh/cam-dbdbdb", count(plugin.Healthy, 3))
	kb.Await("akri.sh/cam-dbdbdb", count(plugin.Healthy, 3))
	admit(t, ka, "p", "cam-dbdbdb")
	kb.Await("akri.sh/cam-dbdbdb", count(plugin.Healthy, 2))
	for _, c := range []struct {
		agent *agent
		state string
		inUse bool
	}{{a, "held", true}, {b, "taken", false}} {
		got, err := c.agent.DebugSlots(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := debug.Slot{Name: "cam-dbdbdb-0", State: c.state, Owner: "node-a", InUse: c.inUse, Healthy: c.inUse}
		if got.Counts["free"] != 2 || got.Counts[c.state] != 1 || len(got.List) != 1 || got.List[0] != want || len(got.Violations) != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	a.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := a.DebugSlots(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("a stopped server returns %+v, %v", got, err)
	}
}
