package slots

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"akri.sh/akri/kubebox/clustertest"
)

// Devices that come and go every few milliseconds, while Pods come and go, do not crash
// the kubelet. It would crash if an id left the list while it is being allocated.
func TestFlappingDevices(t *testing.T) {
	clustertest.Full(t)
	w := newWorld(t)
	length, _ := clustertest.Soak(t, 10*time.Second)
	instances := w.configuration("flap", 5, "flap0", "flap1")
	// The kubelet ignores requests for resources that it does not know yet.
	w.allocatable(node1, instances["flap0"], 5)
	w.allocatable(node1, "flap", 2)
	available := func(w *world, state string) {
		file := filepath.Join(w.AkriDir(node1), "debug-echo", "debug-echo-availability.txt")
		if err := os.WriteFile(file, []byte(state+"\n"), 0o644); err != nil {
			w.t.Error(err)
		}
	}
	kubelet, done := w.pidOf("node1/kubelet"), make(chan struct{})
	still := w.undo(func(after *world) {
		<-done
		available(after, "ONLINE")
	})
	stop := w.monitorDoubles()
	changes := 0
	go func() {
		defer close(done)
		for began := time.Now(); time.Since(began) < length && w.ctx.Err() == nil; changes++ {
			available(w, []string{"OFFLINE", "ONLINE"}[changes%2])
			time.Sleep(time.Duration(1+changes%40) * time.Millisecond) // the rate is part of the test
		}
	}()
	ran, failed := 0, 0
	for i, flapping := 0, true; flapping; i++ {
		resource := levels[i%len(levels)].resource("flap", instances["flap0"])
		name := fmt.Sprintf("flap-%d", i)
		// Bound here: the scheduler would wait for the node's status.
		w.podWith(name, strings.Replace(podSpec("", nil, container{name: "app", resources: limit(resource, 1)}), "{", "{nodeName: node1, ", 1))
		w.eventually(name+" runs or fails", func() string {
			if len(w.of(name)) > 0 {
				ran++
				return ""
			}
			if w.get("Pod", name).Status.Phase == "Failed" {
				failed++
				return ""
			}
			return w.describe(name)
		})
		w.deleteWith("Pod", name, "gracePeriodSeconds=0")
		select {
		case <-done:
			flapping = false
		default:
		}
	}
	still()
	stop()
	t.Logf("%d changes, %d pods ran, %d were rejected", changes, ran, failed)
	w.healthy()
	if now := w.pidOf("node1/kubelet"); now != kubelet {
		t.Errorf("the kubelet was process %d and is process %d", kubelet, now)
	}
	instances = w.awaitInstances("flap", []string{"flap0", "flap1"}, node1, node2)
	w.eventually("all slots are free", func() string {
		if owners := w.allUsage(instances); len(owners) > 0 {
			return fmt.Sprint(owners)
		}
		return ""
	})
	w.allocatable(node1, instances["flap0"], 5)
	w.started("after", node1, instances["flap0"])
	w.consistent()
}

// pidOf returns the process ID of a component in its node.
func (w *world) pidOf(component string) int {
	w.t.Helper()
	components, err := w.Components(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range components {
		if c.Name == component {
			return c.Pid
		}
	}
	w.t.Fatalf("there is no component %s", component)
	return 0
}
