package instances

import (
	"net/http"
	"path"
	"testing"

	v0 "akri.sh/akri/api/v0"
)

// The response to a claim may be handled after the watch has shown that the Instance is
// gone. It must not bring the Instance back: nothing would drop it again, and the device
// would not be published.
func TestALateResponse(t *testing.T) {
	f := newFixture(t)
	f.create()
	f.want("changed")
	label := v0.NodeLabel("node-a")
	claimed := f.patch(`{"spec":{"deviceUsage":{"cam-1-0":"node-a"}}}`)
	f.want("changed")

	f.patch(`{"metadata":{"labels":{"` + label + `":null}}}`)
	f.want("left")
	f.store.Keep(claimed)
	if f.store.Get(f.name) != nil || f.answers() != 0 {
		t.Error("a response from before the node left the Instance brings it back")
	}
	joined := f.patch(`{"metadata":{"labels":{"` + label + `":""}}}`)
	f.store.Keep(joined)
	if got := f.store.Get(f.name); got == nil || got.ResourceVersion != joined.ResourceVersion {
		t.Errorf("the store has %v after the node has joined again", got)
	}
	f.want("changed")

	f.remove()
	f.eventually("the watch shows the deletion", func() bool { return f.store.Get(f.name) == nil })
	f.store.Keep(claimed) // maybe before the store has the event
	f.want("deleted")
	if f.store.Get(f.name) != nil {
		t.Error("a response keeps the Instance that was deleted")
	}
	f.store.Keep(claimed)
	if f.store.Get(f.name) != nil || len(f.store.Of(configurationOf(claimed))) != 0 || f.answers() != 0 {
		t.Error("a response from before the deletion brings the Instance back")
	}
	f.create()
	f.want("changed")
	f.store.Keep(f.patch(`{"spec":{"capacity":3}}`))
	if got := f.store.Get(f.name); got == nil || got.Spec.Capacity != 3 {
		t.Errorf("the store has %v, want the response about the next Instance", got)
	}
}

// If the watch missed the deletion, the last version that it showed is older than
// responses, so only reading the Instance shows that these are late.
func TestALateResponseWithoutAWatch(t *testing.T) {
	testLateWithoutAWatch(t, "deleted", (*fixture).remove)
}

// The same is true if the node has left the Instance: otherwise the node would not join it
// again.
func TestALateResponseWithoutAWatchOfALeftInstance(t *testing.T) {
	testLateWithoutAWatch(t, "left", func(f *fixture) {
		f.patch(`{"metadata":{"labels":{"` + v0.NodeLabel("node-a") + `":null}}}`)
	})
}

// testLateWithoutAWatch checks that a response about an Instance does not bring it back
// after its departure, which the watch has missed, and which the store reports as an event.
func testLateWithoutAWatch(t *testing.T, event string, depart func(*fixture)) {
	t.Helper()
	i := &interrupter{}
	f := newFixture(t, func(next http.RoundTripper) http.RoundTripper { i.next = next; return i })
	f.create()
	f.want("changed")
	list := i.hold(func(r *http.Request) bool { return isWatch(r) || path.Base(r.URL.Path) == "instances" })
	defer list()
	i.cut()
	claimed := f.patch(`{"spec":{"deviceUsage":{"cam-1-0":"node-a"}}}`)
	depart(f)
	read := i.hold(func(r *http.Request) bool { return path.Base(r.URL.Path) == f.name.Name })
	defer read()
	before := f.touched.Load()
	list()
	f.eventually("the store has the event of the departure", func() bool { return f.touched.Load() > before })
	f.store.Keep(claimed)
	before = f.touched.Load()
	read()
	f.want(event)
	if f.store.Get(f.name) != nil || f.answers() != 0 {
		t.Error("the response brings the Instance back")
	}
	if f.touched.Load() == before {
		t.Error("nobody learns that the response was late")
	}
	f.store.Keep(claimed)
	if f.store.Get(f.name) != nil || f.answers() != 0 {
		t.Error("the response brings the Instance back")
	}
}
