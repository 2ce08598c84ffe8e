package controller

import (
	"net/http"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

func newTestMemory(t *testing.T) *memory {
	t.Helper()
	watches, err := informers.New(t.Context(), &rest.Config{}, http.DefaultClient, func(ownership.Parent) {})
	if err != nil {
		t.Fatal(err)
	}
	queues := parentQueues{templating.InstanceLevel: newFairQueue("", 1), templating.ConfigurationLevel: newFairQueue("", 1)}
	t.Cleanup(func() {
		for _, queue := range queues {
			queue.ShutDown()
		}
	})
	return newMemory(&converge.Converger{Informers: watches}, templates.NewCache(confine.Policy{}), queues)
}

func parentNamed(level templating.Level, name string, uid types.UID) ownership.Parent {
	return ownership.Parent{Level: level, NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, UID: uid}
}

// A parent that is created again under its name starts without state, and so does
// its group's rollout gate.
func TestMemoryIsOfOneUID(t *testing.T) {
	m := newTestMemory(t)
	group, cam := parentNamed(templating.ConfigurationLevel, "cam", "group-1"), parentNamed(templating.InstanceLevel, "cam", "cam-1")
	first := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cam", UID: group.UID}}
	for range 2 { // seeing it again changes nothing
		m.observe(t.Context(), group, first)
		m.observe(t.Context(), cam, first)
		for _, parent := range []ownership.Parent{group, cam} {
			m.update(parent, func(known *record) { known.expected = "1" })
		}
	}
	limit := intstr.FromInt32(1)
	m.gate.SetInstances(group.UID, "ns", []string{"cam", "door"}, limit)
	m.gate.Report(group.UID, "cam", true)
	m.gate.Report(group.UID, "door", true)

	// The Instance alone: its group is not affected, but what was known about the
	// earlier Instance no longer counts.
	cam.UID = "cam-2"
	m.observe(t.Context(), cam, first)
	if m.get(cam).expected != "" || m.get(group).expected == "" {
		t.Errorf("%+v is remembered about the new Instance, %+v about its group", m.get(cam), m.get(group))
	}
	m.gate.SetInstances(group.UID, "ns", []string{"cam", "door"}, limit)
	if m.gate.TryAcquire(group.UID, "door", true, limit) {
		t.Error("an Instance passes although the new one has not been reported")
	}

	// The group: what was known about the earlier group's Instances no longer counts,
	// even if they are reconciled before the new Configuration.
	second := first.DeepCopy()
	second.UID = "group-2"
	m.observe(t.Context(), cam, second)
	m.gate.SetInstances(second.UID, "ns", []string{"cam", "door"}, limit)
	if m.gate.TryAcquire(second.UID, "cam", true, limit) {
		t.Error("an Instance passes because of what was known about the earlier group")
	}
	group.UID = second.UID
	m.observe(t.Context(), group, second)
	if m.gate.Len() != 1 {
		t.Errorf("%d groups are remembered, want 1", m.gate.Len())
	}
	m.forget(t.Context(), group.ByName())
	m.forget(t.Context(), cam.ByName())
	if len(m.records)+m.gate.Len() != 0 {
		t.Errorf("parents are still remembered: %v", m.records)
	}
}

// A pass waits for the last write.
func TestExpectations(t *testing.T) {
	for name, tc := range map[string]struct {
		known   record
		version string
		want    bool
	}{
		"nothing was written": {record{}, "8", false},
		"not seen yet":        {record{expected: "9"}, "8", true},
		"seen":                {record{expected: "9"}, "9", false},
		"others write, too":   {record{expected: "9"}, "10", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.known.awaits(tc.version); got != tc.want {
				t.Errorf("waits: %t, want %t", got, tc.want)
			}
		})
	}
}

// A pass that is not reported is continued by the next one.
func TestUnreportedPasses(t *testing.T) {
	m := newTestMemory(t)
	entry := func(name, uid string) v0.ResourceStatus {
		return v0.ResourceStatus{Version: "v1", Kind: "ConfigMap", Namespace: "ns", Name: name, UID: uid}
	}
	p := &pass{parent: parentNamed(templating.InstanceLevel, "cam", "cam-1")}
	p.base.Resources = []v0.ResourceStatus{entry("announced", "")}
	p.stored.Conditions = []metav1.Condition{{Type: v0.ConditionReady}}
	m.observe(t.Context(), p.parent, nil)
	m.keep(p, []v0.ResourceStatus{entry("announced", ""), entry("applied", "1"), entry("failed", "")})
	known := m.get(p.parent)
	if known.held == nil || !slices.Equal(known.held.Resources, []v0.ResourceStatus{entry("announced", ""), entry("applied", "1")}) ||
		len(known.held.Conditions) != 1 || !known.since.IsZero() {
		t.Errorf("the next pass starts from %+v, computed at %v", known.held, known.since)
	}
}

// A computed status waits again after the former one was written, however long that was ago.
func TestEachStatusWaits(t *testing.T) {
	r, now := &record{}, time.Unix(1000, 0)
	first := r.hold(status{}, progress, now)
	if later := r.hold(status{}, progress, now.Add(first)); first <= 0 || later != 0 {
		t.Errorf("the first status waits for %v, and then for %v", first, later)
	}
	r.reported()
	if second := r.hold(status{}, progress, now.Add(time.Hour)); second != first {
		t.Errorf("the second status waits for %v, the first for %v", second, first)
	}
}

// Garbage collection may have orphaned the objects of a parent before its next pass.
func TestOrphaningIsRemembered(t *testing.T) {
	m := newTestMemory(t)
	cam := parentNamed(templating.InstanceLevel, "cam", "cam-1")
	m.observe(t.Context(), cam, nil)
	m.seeDeletion(cam, []string{metav1.FinalizerDeleteDependents})
	if m.get(cam).orphans {
		t.Error("an Instance orphans its objects although it is deleted with them")
	}
	m.seeDeletion(cam, []string{metav1.FinalizerOrphanDependents})
	m.seeDeletion(cam, []string{v0.FinalizerCleanup})
	m.observe(t.Context(), cam, nil)
	if !m.get(cam).orphans {
		t.Error("it is forgotten that an Instance orphans its objects")
	}
	if m.get(parentNamed(templating.InstanceLevel, "cam", "cam-2")).orphans {
		t.Error("a later Instance orphans its objects like the earlier one")
	}
}

// An Instance whose conditions the cache does not have yet counts as not reconciled. One whose
// number of free slots was written does not: its conditions are the same.
func TestWritesInFlight(t *testing.T) {
	now := time.Unix(1000, 0)
	configuration := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cam", UID: "cam", Generation: 2}}
	for judged, late := range map[bool]int{true: 1, false: 0} {
		m := newTestMemory(t)
		instance := v0.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cam-1", UID: "cam-1", ResourceVersion: "8"}}
		parent := ownership.InstanceParent(&instance)
		m.observe(t.Context(), parent, configuration)
		m.update(parent, func(known *record) {
			known.generation, known.expected, known.written, known.judged = 2, "9", now, judged
		})
		p := &pass{parent: ownership.ConfigurationParent(configuration), configuration: configuration}
		if got := m.survey(p, []v0.Instance{instance}, now).late; got != late {
			t.Errorf("conditions in flight: %t: %d Instances are late, want %d", judged, got, late)
		}
	}
}
