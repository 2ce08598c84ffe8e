package slots

import (
	"fmt"
	"sync"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// Pods on both nodes request slots of a device at the same time, through the resource of its
// Instance: those of a DaemonSet and bare ones, and then only bare ones, as many as the
// device has slots. None is refused, since each finds a free slot. With many clusters on a busy
// machine, as in the gate, an API server may not answer a claim in time, which refuses a Pod,
// too; TestPreferencesSpread checks the same there, without a cluster.
func TestSimultaneousRequests(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	const capacity = 5
	instance := w.configuration("spread", capacity, "spread0")["spread0"]
	var mu sync.Mutex
	refused := map[string]string{} // by name: a DaemonSet deletes its failed Pods
	w.watch("Pod", func(e event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Object.Status.Phase == "Failed" {
			refused[e.Object.Metadata.Name] = e.Object.Status.Message
		}
	})
	requested := 0
	for range rounds(5) {
		for _, bare := range []int{capacity - 2, capacity} {
			for _, node := range []string{node1, node2} {
				w.allocatable(node, instance, capacity)
			}
			if bare < capacity {
				w.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec: %s
`, podSpec("", nil, container{name: "app", resources: limit(instance, 1)})))
			}
			for i := range bare {
				w.pod(fmt.Sprintf("bare-%d-%d", requested, i), []string{node1, node2}[i%2], instance)
			}
			requested += capacity
			w.eventually("every Pod has started, or was refused", func() string {
				mu.Lock()
				defer mu.Unlock()
				if running := len(w.usersOf("spread0")); running+len(refused) < capacity {
					return fmt.Sprintf("%d run, refused: %q", running, refused)
				}
				return ""
			})
			w.consistent()
			w.deleteAll("DaemonSet")
			w.deleteAll("Pod")
			w.eventually("the Pods are gone", func() string { return namesOf(w.list("Pod", "")) })
			w.awaitUsage(instance)
			mu.Lock()
			for name, message := range refused {
				t.Errorf("%s was refused while a slot was free: %s", name, message)
			}
			t.Logf("%d of %d requests were refused", len(refused), capacity)
			clear(refused)
			mu.Unlock()
		}
	}
}
