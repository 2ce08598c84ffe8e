package deviceplugin_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"akri.sh/akri/agent/debug"
	v0 "akri.sh/akri/api/v0"
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

// TestDebugInstances checks that the state shows an Instance only while something about it
// is unusual, and a call while it waits.
func TestDebugInstances(t *testing.T) {
	const name = "cam-dcdcdc"
	w := newWorld(t)
	w.instance(name, "node-a")
	k := kubelettest.Start(t, kubelettest.Options{})
	a, d := w.agent("node-a", k), w.device(name, 5)
	shows := func(what string, waiting int, flags ...string) {
		t.Helper()
		want := debug.Slots{Waiting: waiting}
		if len(flags) > 0 {
			want.Instances = []debug.Instance{{Name: name, State: flags}}
		}
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			got, err := a.DebugSlots(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if reflect.DeepEqual(debug.Slots{Waiting: got.Waiting, Instances: got.Instances}, want) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d calls wait, and the Instances are %v; want %v", what, got.Waiting, got.Instances, want)
			}
		}
	}
	shows("before the handler reports it", 0, "unpublished")
	a.publish(d)
	k.Await(v0.ResourceName(name), count(plugin.Healthy, 5))
	shows("offered", 0)
	a.patchTime.Store(int64(time.Second))
	admitted := make(chan error, 1)
	go func() { admitted <- k.Admit(kubelettest.Pod("p", v0.ResourceName(name), 1)) }()
	shows("during an Allocate", 1)
	if err := <-admitted; err != nil {
		t.Fatal(err)
	}
	shows("after it", 0)
	a.forbidden.Store(true)
	if err := k.Admit(kubelettest.Pod("q", v0.ResourceName(name), 1)); err == nil {
		t.Fatal("a slot was given without a record")
	}
	shows("when claims are denied", 0, "suspended")
	d.Online = false
	a.publish(d)
	shows("and the device is missing", 0, "offline", "suspended")
	a.forbidden.Store(false)
	d.Online = true
	a.publish(d)
	shows("afterwards", 0)
}
