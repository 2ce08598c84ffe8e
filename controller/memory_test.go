package controller

import (
	"net/http"
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
	"akri.sh/akri/controller/problem"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// A parent that is created again under its name starts without state, and so does
// its group's rollout gate.
func TestMemoryIsOfOneUID(t *testing.T) {
	watches, err := informers.New(t.Context(), &rest.Config{}, http.DefaultClient, func(ownership.Parent) {})
	if err != nil {
		t.Fatal(err)
	}
	m := &parentMemory{
		instances:      newStatusCache[v0.InstanceStatus](),
		configurations: newStatusCache[v0.ConfigurationStatus](),
		retries:        newRetries(),
		templates:      templates.NewCache(confine.Policy{}),
		converger:      converge.New(converge.Options{Informers: watches}),
		informers:      watches,
		gate:           rollout.NewGate(func(types.NamespacedName) {}),
		delays:         newGroupDelays(),
		kinds:          newKindsInUse(),
		seen:           map[ownership.Parent]sighting{},
	}
	name := types.NamespacedName{Namespace: "ns", Name: "cam"}
	group := ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: name, UID: "group-1"}
	cam := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: name, UID: "cam-1"}
	first := &v0.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cam", UID: group.UID}}
	for range 2 { // seeing it again changes nothing
		m.observe(t.Context(), group, first)
		m.observe(t.Context(), cam, first)
	}
	m.configurations.remember(group.UID, v0.ConfigurationStatus{}, "1", time.Now())
	m.instances.remember(cam.UID, v0.InstanceStatus{}, "1", time.Now())
	m.retries.record(cam.UID, []*problem.Error{{Retryable: true}}, time.Now())
	limit := intstr.FromInt32(1)
	m.gate.SetInstances(group.UID, "ns", []string{"cam", "door"}, limit)
	m.gate.Observe(group.UID, "cam", true)
	m.gate.Observe(group.UID, "door", true)

	// The Instance alone: its group is not affected, but what was known about the
	// earlier Instance no longer counts.
	cam.UID = "cam-2"
	m.observe(t.Context(), cam, first)
	if len(m.instances.statuses) != 0 || len(m.configurations.statuses) != 1 {
		t.Errorf("%d Instances and %d Configurations are remembered, want 0 and 1", len(m.instances.statuses), len(m.configurations.statuses))
	}
	if m.retries.len() != 0 {
		t.Error("the back-off of the earlier Instance is remembered")
	}
	m.gate.SetInstances(group.UID, "ns", []string{"cam", "door"}, limit)
	if m.gate.TryAcquire(group.UID, "door", limit) {
		t.Error("an Instance passes although the new one has not been reported")
	}

	// The group: what was known about the earlier group's Instances no longer counts,
	// even if they are reconciled before the new Configuration.
	second := first.DeepCopy()
	second.UID = "group-2"
	m.observe(t.Context(), cam, second)
	m.gate.SetInstances(second.UID, "ns", []string{"cam", "door"}, limit)
	m.gate.Observe(second.UID, "cam", true)
	if m.gate.TryAcquire(second.UID, "cam", limit) {
		t.Error("an Instance passes because of what was known about the earlier group")
	}
	group.UID = second.UID
	m.observe(t.Context(), group, second)
	if m.gate.Len() != 1 {
		t.Errorf("%d groups are remembered, want 1", m.gate.Len())
	}
	m.forget(t.Context(), group.ByName())
	m.forget(t.Context(), cam.ByName())
	if len(m.seen)+len(m.instances.statuses)+len(m.configurations.statuses)+m.gate.Len() != 0 {
		t.Errorf("parents are still remembered: %v", m.seen)
	}
}

// Garbage collection may have orphaned the objects of a parent before its next pass.
func TestOrphaningIsRemembered(t *testing.T) {
	m := &parentMemory{seen: map[ownership.Parent]sighting{}}
	cam := ownership.Parent{
		Level: templating.InstanceLevel, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "cam"}, UID: "cam-1",
	}
	m.observe(t.Context(), cam, nil)
	m.seeDeletion(cam, []string{metav1.FinalizerDeleteDependents})
	if m.orphans(cam) {
		t.Error("an Instance orphans its objects although it is deleted with them")
	}
	m.seeDeletion(cam, []string{metav1.FinalizerOrphanDependents})
	m.seeDeletion(cam, []string{v0.FinalizerCleanup})
	m.observe(t.Context(), cam, nil)
	if !m.orphans(cam) {
		t.Error("it is forgotten that an Instance orphans its objects")
	}
	if later := (ownership.Parent{Level: cam.Level, NamespacedName: cam.NamespacedName, UID: "cam-2"}); m.orphans(later) {
		t.Error("a later Instance orphans its objects like the earlier one")
	}
}
