package agent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"akri.sh/akri/agent/discover/hostpaths"
	"akri.sh/akri/agent/discover/properties"
	"akri.sh/akri/agent/discover/registry"
	"akri.sh/akri/agent/discover/streams"
	v0 "akri.sh/akri/api/v0"
)

// A thousand agents that fail at the same time do not retry at the same times.
func TestRetriesOfManyAgents(t *testing.T) {
	const agents, attempts = 1000, 20
	name := types.NamespacedName{Namespace: "plant", Name: "door"}
	at := map[time.Duration]int{} // agents, by the time of the last attempt in seconds
	for range agents {
		limiter, now := newLimiter(), time.Duration(0)
		for attempt := range attempts {
			delay := limiter.When(name)
			if delay <= 0 || delay > maxRetryDelay || attempt == attempts-1 && delay < maxRetryDelay/2 {
				t.Fatalf("the delay of attempt %d is %s", attempt, delay)
			}
			now += delay
		}
		at[now.Truncate(time.Second)]++
	}
	for second, count := range at {
		if count > agents/20 {
			t.Errorf("%d of %d agents make attempt %d within the same second, at %s", count, agents, attempts, second)
		}
	}
}

// The grace period of a Configuration is that of its devices: without a message, the agent
// waits as long for one.
func TestGracePeriodOfTheConfiguration(t *testing.T) {
	ignore, log := func(types.NamespacedName) {}, slog.New(slog.DiscardHandler)
	handlers := registry.New(t.TempDir(), registry.Network{}, log)
	r := reconciler{
		streams:    streams.NewSupervisor(handlers, hostpaths.Policy{}, ignore, streams.NewMetrics(prometheus.NewRegistry()), log),
		properties: properties.NewWatcher(nil, false, ignore),
	}
	defer r.streams.Close()
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "plant", Name: "door"}}
	configuration.Spec.DiscoveryHandler.Name = "udev"
	for want, seconds := range map[time.Duration]*int32{registry.ForgetAfter: nil, time.Hour: ptr.To[int32](3600)} {
		configuration.Spec.DiscoveryHandler.GracePeriodSeconds = seconds
		r.discover(configuration, &failures{})
		left := time.Until(r.streams.Snapshot(keyOf(configuration)).Next)
		if left > want || left < want-time.Minute {
			t.Errorf("the devices are kept for %s, want %s", left, want)
		}
	}
}
