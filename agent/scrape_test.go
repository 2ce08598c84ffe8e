package agent_test

import (
	"bufio"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubelettest"
)

// scrape returns the metrics at an address, by name and labels as they are exported.
func scrape(t *testing.T, address string) map[string]float64 {
	t.Helper()
	_, text := get(address, "/metrics")
	values := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if cut := strings.LastIndexByte(lines.Text(), ' '); cut > 0 && lines.Text()[0] != '#' {
			value, err := strconv.ParseFloat(lines.Text()[cut+1:], 64)
			if err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			values[lines.Text()[:cut]] = value
		}
	}
	return values
}

// TestMetricsOfARelease checks what the metrics count when a container gets a device and
// ends, when a handler refuses a request, and when it is gone.
func TestMetricsOfARelease(t *testing.T) {
	const refused = `akri_discovery_errors_total{discovery_handler_name="debugEcho",reason="refused"}`
	w := newWorld(t)
	n, k := w.node("n"), kubelettest.Start(t, kubelettest.Options{})
	if err := k.Join(n.config, n.name); err != nil {
		t.Fatal(err)
	}
	n.metrics = freeAddress(t)
	defer n.start("agent", func(ctx context.Context) error {
		return agent.Run(ctx, agent.Options{
			NodeName: n.name, HandlersDir: n.directory, KubeletDir: k.Dir(), MetricsAddress: n.metrics,
			Config: n.config, Logger: slog.New(slog.DiscardHandler),
		})
	})()
	stopHandler := n.startHandler(true)
	w.configure("echo", "descriptions: [foo0]", nil)
	name := w.awaitDevices("foo0")["foo0"].Name
	k.Await(v0.ResourceName(name), func(devices map[string]string) bool {
		return len(devices) == 2 && !slices.Contains(slices.Collect(maps.Values(devices)), plugin.Unhealthy)
	})
	pod := kubelettest.Pod("p", v0.ResourceName(name), 1)
	start := time.Now()
	if err := k.Admit(pod); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Pods are known", func() bool { return scrape(t, n.metrics)[`akri_agent_observer{state="synced"}`] == 1 })
	k.End(pod)
	owner := v0.SlotOwner(n.name)
	w.eventually("the slot is free", func() bool {
		return !slices.Contains(slices.Collect(maps.Values(w.instances()["foo0"].Spec.DeviceUsage)), owner)
	})
	took := time.Since(start).Seconds()
	w.eventually("the release is counted", func() bool {
		return scrape(t, n.metrics)[`akri_agent_release_latency_seconds_count{level="instance"}`] == 1
	})
	got := scrape(t, n.metrics)
	for metric, want := range map[string]float64{
		`akri_agent_allocations_total{outcome="granted"}`: 1, `akri_agent_claims_total{outcome="written"}`: 1,
		`akri_agent_releases_total{outcome="written"}`: 1, `akri_agent_observer{state="synced"}`: 1,
		`akri_agent_observer{state="syncing"}`: 0, `akri_agent_observer{state="failing"}`: 0,
		`akri_agent_slots{level="both",state="free"}`: 2, refused: 0,
	} {
		if got[metric] != want {
			t.Errorf("%s is %v, want %v", metric, got[metric], want)
		}
	}
	if latency := got[`akri_agent_release_latency_seconds_sum{level="instance"}`]; latency <= 0 || latency > took {
		t.Errorf("the release took %.3f s by the metric, and less than %.3f s by the clock", latency, took)
	}

	w.configure("bad", "descriptions: nonsense", nil)
	w.eventually("the refusal is counted", func() bool { return scrape(t, n.metrics)[refused] >= 1 })
	stopHandler()
	w.eventually("the handler's absence is counted", func() bool {
		return scrape(t, n.metrics)[`akri_discovery_errors_total{discovery_handler_name="debugEcho",reason="connect"}`] >= 1
	})
}
