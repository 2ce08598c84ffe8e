package slots

import (
	"fmt"
	"slices"
	"testing"

	"akri.sh/akri/kubebox/clustertest"
)

// An init container that requests the device passes it to the app container; a sidecar
// has one of its own.
func TestInitContainersAndSidecars(t *testing.T) {
	clustertest.Full(t)
	t.Parallel()
	w := newWorld(t)
	devices := []string{"kinds0", "kinds1"}
	instances := w.configuration("kinds", 2, devices...)
	for _, level := range levels {
		app := container{name: "app", resources: limit(level.resource("kinds", instances["kinds0"]), 1)}
		ended, sidecar := app, app
		ended.name, ended.more = "init", "args: [end]"
		sidecar.name, sidecar.more = "sidecar", "restartPolicy: Always, args: [\"6053\"]"

		w.step(level.name+", init and app", func(w *world) {
			w.podWith("initial", podSpec(node1, []container{ended}, app))
			u := w.container("initial", "app")
			if got := w.allUsage(instances); !slices.Equal(got, []string{level.owner(node1)}) {
				w.t.Errorf("slots are owned by %q while %v runs, want one", got, u)
			}
			w.consistent()
			w.endPod("initial", instances)
		})

		w.step(level.name+", sidecar and app", func(w *world) {
			w.podWith("both", podSpec(node1, []container{sidecar}, app))
			first, second := w.container("both", "sidecar"), w.container("both", "app")
			if len(first.devices) != 1 || len(second.devices) != 1 {
				w.t.Errorf("%v and %v, want one device each", first, second)
			}
			if got := w.allUsage(instances); len(got) != 2 {
				w.t.Errorf("slots are owned by %q, want two", got)
			}
			w.consistent()
			w.endPod("both", instances)
		})

		w.step(level.name+", sidecar, init and app", func(w *world) {
			w.podWith("three", podSpec(node1, []container{sidecar, ended}, app))
			w.container("three", "sidecar")
			w.container("three", "app")
			if got := w.allUsage(instances); len(got) != 2 {
				w.t.Errorf("slots are owned by %q, want two", got)
			}
			w.consistent()
			w.endPod("three", instances)
		})
	}
}

// allUsage returns the owners of all slots that are not free.
func (w *world) allUsage(instances map[string]string) []string {
	w.t.Helper()
	var owners []string
	for _, instance := range instances {
		owners = append(owners, w.usage(instance)...)
	}
	slices.Sort(owners)
	return owners
}

// endPod deletes a Pod, which must not have failed, and waits until all slots are free.
func (w *world) endPod(name string, instances map[string]string) {
	w.t.Helper()
	if failed := w.failedPods(); failed != "" {
		w.t.Error(failed)
	}
	w.delete("Pod", name)
	w.gone(name)
	w.eventually("free slots", func() string {
		if owners := w.allUsage(instances); len(owners) > 0 {
			return fmt.Sprint(owners)
		}
		return ""
	})
}
