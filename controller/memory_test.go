package controller

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/controller/confine"
	"akri.sh/akri/controller/converge"
	"akri.sh/akri/controller/informers"
	"akri.sh/akri/controller/ownership"
	"akri.sh/akri/controller/rollout"
	"akri.sh/akri/controller/templates"
	"akri.sh/akri/templating"
)

// A parent that is created again under its name starts without state, and so does
// its group's rollout gate.
func TestMemoryIsOfOneUID(t *testing.T) {
	watches, err := informers.New(&rest.Config{}, http.DefaultClient, func(ownership.Parent) {})
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{
		instances:      newStatusCache[v0.InstanceStatus](),
		configurations: newStatusCache[v0.ConfigurationStatus](),
		templates:      templates.NewCache(confine.Policy{}),
		converger:      converge.New(converge.Options{}),
		informers:      watches,
		gate:           rollout.NewGate(func(types.NamespacedName) {}),
		delays:         newGroupDelays(),
		uids:           map[ownership.Parent]types.UID{},
	}
	name := types.NamespacedName{Namespace: "ns", Name: "cam"}
	group := ownership.Parent{Level: templating.ConfigurationLevel, NamespacedName: name, UID: "group-1"}
	cam := ownership.Parent{Level: templating.InstanceLevel, NamespacedName: name, UID: "cam-1"}
	for range 2 { // seeing it again changes nothing
		m.see(group)
		m.see(cam)
	}
	m.configurations.remember(group.UID, v0.ConfigurationStatus{})
	m.instances.remember(cam.UID, v0.InstanceStatus{})
	m.gate.Know(name, "cam", true)

	// The Instance alone: its group is not affected.
	cam.UID = "cam-2"
	m.see(cam)
	if len(m.instances.written) != 0 || len(m.configurations.written) != 1 {
		t.Errorf("%d Instances and %d Configurations are remembered, want 0 and 1", len(m.instances.written), len(m.configurations.written))
	}
	// The group: what was known about the earlier group's Instances no longer counts.
	m.gate.Know(name, "cam", true)
	m.gate.Know(name, "door", true)
	group.UID = "group-2"
	m.see(group)
	m.gate.Know(name, "cam", true)
	if m.gate.Pass(name, "cam", []string{"cam", "door"}, 1) {
		t.Error("an Instance passes because of what was known about the earlier group")
	}
	m.forget(group.ByName())
	m.forget(cam.ByName())
	if len(m.uids)+len(m.instances.written)+len(m.configurations.written) != 0 {
		t.Errorf("parents are still remembered: %v", m.uids)
	}
}
