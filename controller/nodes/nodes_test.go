package nodes_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/nodes"
)

// A short grace period, and one that never ends during a test.
const (
	short = 300 * time.Millisecond
	never = time.Hour
)

func TestADeletedNodeIsRemovedWithItsOwnSlots(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-shared", true, []string{b, a}, a, b, "C:0:"+a, "C:0:"+b, "C:cams-1:"+b, "")
	w.device("cams-local", false, []string{b}, b)
	w.device("cams-other", false, []string{a}, a)
	w.pod("garbage", b, "cams-shared")
	w.run(nodes.Options{NotReadyGrace: never, GoneGrace: short})
	w.deleteNode(b)
	shared := w.off("cams-shared", b)
	if !slices.Equal(shared.Spec.Nodes, []string{a}) {
		t.Errorf("nodes are %q, want only %s", shared.Spec.Nodes, a)
	}
	want := map[string]v0.SlotOwner{
		"cams-shared-0": v0.SlotOwner(a), "cams-shared-2": v0.SlotOwner("C:0:" + a), "cams-shared-5": "",
	}
	if !maps.Equal(shared.Spec.DeviceUsage, want) {
		t.Errorf("deviceUsage is %v, want %v", shared.Spec.DeviceUsage, want)
	}
	if _, labelled := shared.Labels[v0.NodeLabel(a)]; !labelled {
		t.Error("the other node's label was removed")
	}
	w.deleted("cams-local")
	if other := w.instance("cams-other"); other == nil || other.Spec.DeviceUsage["cams-other-0"] != v0.SlotOwner(a) {
		t.Errorf("an Instance that the node never saw has changed: %+v", other)
	}
}

func TestANodeThatIsNotReadyIsRemovedAfterTheGracePeriod(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	w.device("cams-cam", true, []string{a, b, c}, "C:0:"+b)
	w.run(nodes.Options{NotReadyGrace: time.Second})
	w.condition(c, corev1.ConditionUnknown)
	w.condition(c, corev1.ConditionTrue) // back within the grace period
	began := time.Now()
	w.condition(b, corev1.ConditionUnknown)
	cam := w.off("cams-cam", b)
	if took := time.Since(began); took < time.Second {
		t.Errorf("removed after %s, before the end of the grace period", took)
	}
	w.hasEvent("cams-cam", "NodeLost", "node "+b+" is NotReady")
	if !slices.Equal(cam.Spec.Nodes, []string{a, c}) { // the grace period of c would be over
		t.Errorf("nodes are %q, want %s and %s", cam.Spec.Nodes, a, c)
	}
}

func TestAPodThatUsesADeviceKeepsItsNode(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-used", true, []string{a, b}, b)
	w.device("cams-unused", true, []string{a, b}, b)
	w.device("group-1", true, []string{a, b}, "C:0:"+b)
	direct, byGroup := w.pod("direct", b, "cams-used"), w.pod("by-group", b, "group")
	w.pod("elsewhere", a, "cams-unused")
	w.run(nodes.Options{NotReadyGrace: short})
	w.condition(b, corev1.ConditionUnknown)
	w.off("cams-unused", b)
	c := w.node("c")
	w.device("cams-later", true, []string{a, c})
	w.condition(c, corev1.ConditionUnknown)
	w.off("cams-later", c) // everything due for b has been decided
	for _, name := range []string{"cams-used", "group-1"} {
		if kept := w.instance(name); !slices.Contains(kept.Spec.Nodes, b) || kept.Spec.DeviceUsage[v0.SlotName(name, 0)] == "" {
			t.Errorf("a Pod uses %s on an unreachable node, but the node was removed: %+v", name, kept.Spec)
		}
	}
	direct.Status.Phase = corev1.PodFailed
	if err := w.Status().Update(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	w.off("cams-used", b)
	if err := w.Delete(t.Context(), byGroup, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	w.off("group-1", b)
}

// The watch of nodes may show nothing for long, and then for all nodes.
func TestAStaleCacheIsReadWithBackOff(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-cam", true, []string{a, b})
	reads := make(chan time.Time, 100)
	returns := sync.OnceFunc(func() {
		w.stale.Store(true)
		w.condition(b, corev1.ConditionTrue)
	})
	w.each(http.MethodGet, "/nodes/"+b, func() {
		returns()
		reads <- time.Now()
	})
	w.run(nodes.Options{NotReadyGrace: short})
	w.condition(b, corev1.ConditionUnknown)
	var times []time.Time
	for len(times) < 4 {
		select {
		case read := <-reads:
			times = append(times, read)
		case <-time.After(time.Minute):
			t.Fatalf("the node was read %d times, want 4", len(times))
		}
	}
	// Each delay of the queue is twice the one before.
	if took := times[3].Sub(times[0]); took < 1200*time.Millisecond { // 0.2 + 0.4 + 0.8 s
		t.Errorf("read three times again within %v", took)
	}
	if cam := w.instance("cams-cam"); !slices.Contains(cam.Spec.Nodes, b) {
		t.Errorf("a Ready node was removed because of a stale cache: %q", cam.Spec.Nodes)
	}
}

func TestAConcurrentClaimIsKept(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-cam", true, []string{a, b}, b, "")
	w.run(nodes.Options{NotReadyGrace: short})
	w.once(http.MethodPatch, "/instances/cams-cam", func() { w.claim("cams-cam", 1, "C:0:"+a) })
	w.condition(b, corev1.ConditionUnknown)
	cam := w.off("cams-cam", b) // by another attempt
	if owner := cam.Spec.DeviceUsage["cams-cam-1"]; owner != v0.SlotOwner("C:0:"+a) {
		t.Errorf("the concurrent claim is lost: %v", cam.Spec.DeviceUsage)
	}
}

// A lost node returns while it is removed, and its agent claims a slot.
func TestANodeThatReturnsMeanwhileIsKept(t *testing.T) {
	for method, shared := range map[string]bool{http.MethodPatch: true, http.MethodDelete: false} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t)
			a, b, c := w.node("a"), w.node("b"), w.node("c")
			on := []string{b}
			if shared {
				on = []string{a, b}
			}
			w.device("cams-cam", shared, on, "")
			w.device("cams-door", true, []string{a, c})
			w.run(nodes.Options{NotReadyGrace: short})
			claimed := make(chan struct{})
			w.once(method, "/instances/cams-cam", func() {
				w.condition(b, corev1.ConditionTrue)
				w.claim("cams-cam", 0, b)
				close(claimed)
			})
			before := w.instance("cams-cam")
			w.condition(b, corev1.ConditionUnknown)
			<-claimed
			w.condition(c, corev1.ConditionUnknown)
			w.off("cams-door", c) // later than b would have been
			cam := w.instance("cams-cam")
			if cam == nil || cam.UID != before.UID || cam.Spec.DeviceUsage["cams-cam-0"] != v0.SlotOwner(b) || !slices.Contains(cam.Spec.Nodes, b) {
				t.Errorf("the agent that returned has lost what it wrote: %+v", cam)
			}
		})
	}
}

func TestAnInstanceThatNoNodeSees(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-found", true, []string{b})
	w.device("cams-lost", true, []string{b}, b)
	w.run(nodes.Options{NotReadyGrace: never, GoneGrace: short, EmptyGrace: 2 * time.Second})
	w.deleteNode(b)
	began := time.Now()
	w.off("cams-lost", b)
	found := w.off("cams-found", b)
	found.Spec.Nodes = []string{a} // another node's agent finds the device
	if err := w.Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
	w.deleted("cams-lost")
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("deleted after %s, before the end of its grace period", took)
	}
	w.hasEvent("cams-lost", "DeviceLost", "no node has seen the device")
	if now := w.instance("cams-found"); now == nil || now.UID != found.UID {
		t.Errorf("an Instance that was discovered again was deleted: %+v", now)
	}
}

// An Instance that no node sees is the record of the slots that containers still have.
func TestAnInstanceWhoseSlotsAreHeldIsKept(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-held", true, nil, a, "", "C:0:"+b)
	w.device("cams-free", true, nil, "")
	w.device("cams-label", true, []string{a})
	labeled := w.instance("cams-label")
	labeled.Labels[v0.NodeLabel(w.Namespace+"-x")] = ""
	if err := w.Update(t.Context(), labeled); err != nil {
		t.Fatal(err)
	}
	w.device("cams-junk", true, []string{a}, "nobody:knows/this", "")
	w.run(nodes.Options{NotReadyGrace: never, GoneGrace: short, EmptyGrace: short})
	w.deleted("cams-free")
	w.off("cams-label", w.Namespace+"-x")
	w.Eventually("the slot with an unreadable owner", func() string {
		return string(w.instance("cams-junk").Spec.DeviceUsage["cams-junk-0"])
	})
	if w.instance("cams-held") == nil {
		t.Fatal("an Instance was deleted although containers of live nodes have its slots")
	}
	w.deleteNode(b) // its slot is freed with it
	held := w.off("cams-held", b)
	if held.Spec.DeviceUsage["cams-held-0"] != v0.SlotOwner(a) {
		t.Errorf("the slots are %v", held.Spec.DeviceUsage)
	}
	held.Spec.DeviceUsage["cams-held-0"] = "" // the agent of a releases it, and dies
	if err := w.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	w.deleted("cams-held")
}

func TestWithoutAGracePeriodNothingIsRemoved(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-cam", true, []string{a, b})
	w.device("cams-empty", true, nil)
	w.run(nodes.Options{GoneGrace: short, EmptyGrace: short, StaleDelay: short})
	w.deleteNode(b)
	w.offers(a, map[string]string{"akri.sh/gone": "0"})
	w.lacks(a, "akri.sh/gone") // the controller works, and the grace periods are over
	if cam := w.instance("cams-cam"); len(cam.Spec.Nodes) != 2 {
		t.Errorf("nodes are %q", cam.Spec.Nodes)
	}
	if w.instance("cams-empty") == nil {
		t.Error("the Instance without nodes was deleted")
	}
}

func TestNothingIsSentAtRest(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("a"), w.node("b")
	w.device("cams-cam", true, []string{a, b}, a, "")
	w.offers(a, map[string]string{"akri.sh/cams-cam": "0", "example.com/gone": "0"})
	w.run(nodes.Options{NotReadyGrace: short, StaleDelay: short})
	w.condition(b, corev1.ConditionUnknown)
	w.off("cams-cam", b)
	before := w.requests.Load()
	for range 10 {
		w.condition(a, corev1.ConditionTrue) // heartbeats
		w.condition(b, corev1.ConditionUnknown)
	}
	w.claim("cams-cam", 1, a)
	w.device("cams-door", true, []string{a})
	c := w.node("c")
	w.device("cams-bell", true, []string{a, c})
	w.condition(c, corev1.ConditionUnknown)
	w.off("cams-bell", c)
	// For c: the node, its Pods, the patch.
	if sent := w.requests.Load() - before; sent != 3 {
		t.Errorf("%d requests, want 3 for the node that was lost and none for heartbeats and claims", sent)
	}
}

// hasEvent waits for an Event about an Instance.
func (w *world) hasEvent(instance, reason, note string) {
	w.T.Helper()
	w.Eventually("Event "+reason, func() string {
		var list eventsv1.EventList
		if err := w.List(w.T.Context(), &list, client.InNamespace(w.Namespace)); err != nil {
			w.T.Fatal(err)
		}
		for _, event := range list.Items {
			if event.Regarding.Name == instance && event.Reason == reason && strings.Contains(event.Note, note) {
				return ""
			}
		}
		return fmt.Sprintf("not among the %d Events", len(list.Items))
	})
}
