package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/discovery"
)

// passCounter counts the passes that an agent logs.
type passCounter struct {
	slog.Handler

	passes *atomic.Int64
}

func (passCounter) Enabled(context.Context, slog.Level) bool { return true }

func (c passCounter) Handle(_ context.Context, record slog.Record) error {
	if record.Message == "Reconciling the Configuration" {
		c.passes.Add(1)
	}
	return nil
}

// The claims of other nodes cost an agent no pass over the devices of the Configuration.
func TestClaimsOfOthersCostNoPass(t *testing.T) {
	const claims = 100
	w := newWorld(t)
	n := w.node("a")
	passes := &atomic.Int64{}
	n.start("agent", func(ctx context.Context) error {
		return agent.RunWithSink(ctx, agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: n.directory, MetricsAddress: "0",
			Config: n.config, Logger: slog.New(passCounter{slog.DiscardHandler, passes}),
		}, n.sink)
	})
	n.startHandler(true)
	w.configure("echo", "descriptions: [foo0]", func(spec map[string]any) { spec["capacity"] = int64(claims) })
	foo0 := w.awaitDevices("foo0")["foo0"]
	patch := func(text string) {
		t.Helper()
		if _, err := w.client.Resource(v0.InstanceResource).Namespace(w.namespace).Patch(t.Context(), foo0.Name, types.MergePatchType,
			[]byte(text), metav1.PatchOptions{FieldManager: "another"}); err != nil {
			t.Fatal(err)
		}
	}
	// What the agent repairs shows that it has seen all that was written before.
	repaired := func(value string) {
		t.Helper()
		patch(`{"spec":{"brokerProperties":{"DEBUG_ECHO_DESCRIPTION":"` + value + `"}}}`)
		w.eventually("the property is repaired", func() bool {
			return w.instances()["foo0"].Spec.BrokerProperties["DEBUG_ECHO_DESCRIPTION"] == "foo0"
		})
	}
	repaired("x")
	before := passes.Load()
	for i := range claims {
		patch(fmt.Sprintf(`{"spec":{"deviceUsage":{"%s-%d":"another"}}}`, foo0.Name, i))
	}
	repaired("y")
	if before == 0 {
		t.Error("no pass is counted")
	}
	if used := len(w.instances()["foo0"].Spec.DeviceUsage); used != claims {
		t.Fatalf("%d slots are in use, want %d", used, claims)
	}
	if counted := passes.Load() - before; counted > claims/10 {
		t.Errorf("%d passes for %d claims and a repair, want those of the repair", counted, claims)
	}
}

// A failure that the publisher finds has the handler's name, because the handler must
// change what it reports.
func TestRefusedDevicesNameTheHandler(t *testing.T) {
	w := newWorld(t)
	a := w.node("a")
	a.startAgent()
	send := a.startScripted("large", 1)
	send(discovery.Device{ID: "meter", Properties: map[string]string{"VALUE": strings.Repeat("x", v0.MaxPropertiesLength+1)}})
	w.eventually("the device is refused", func() bool { return len(w.failures("large")) > 0 })
	if found := w.failures("large"); len(found) != 1 || found[0].Handler != "large" || found[0].Node != a.name ||
		!strings.Contains(found[0].Message, "meter") {
		t.Errorf("the failures are %+v, want one of the handler large on %s about its device", found, a.name)
	}
}
