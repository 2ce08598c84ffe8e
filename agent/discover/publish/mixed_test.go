package publish

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/serve/claims"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
	"akri.sh/akri/internal/original"
)

// mixed is a shared device that an agent of Akri on node-b and this project's agent on
// node-a see.
type mixed struct {
	*bench
	ours   *Publisher
	claims *claims.Executor
	akri   original.Agent
	device original.Device
	name   types.NamespacedName
}

func newMixed(t *testing.T) *mixed {
	b := newBench(t)
	m := &mixed{bench: b, ours: b.publisher("node-a"), device: original.Device{
		Name: v0.InstanceName("door", camera.ID, "", true), Properties: map[string]any{"URL": "rtsp://foo0"}, Capacity: 2, Shared: true,
	}}
	m.akri = original.Agent{Client: b.client, Namespace: b.configuration.Namespace, Node: "node-b"}
	m.claims = claims.New(b.client, m.ours.instances, v0.FieldManagerAgent)
	m.name = b.of(m.device.Name)
	return m
}

// accepted fails the test if an apply of Akri conflicts.
func (m *mixed) accepted(what string, err error) {
	m.t.Helper()
	if err != nil {
		m.t.Errorf("Akri cannot %s: %v", what, err)
	}
}

// owns checks the owners of the slots.
func (m *mixed) owns(want map[string]v0.SlotOwner) {
	m.t.Helper()
	if got := m.get(m.device.Name).Spec.DeviceUsage; !maps.Equal(got, want) {
		m.t.Errorf("the owners are %v, want %v", got, want)
	}
}

// own sets the owner of a slot as this project's agent does.
func (m *mixed) own(slot int, owned bool) {
	m.t.Helper()
	owners := map[int]v0.Owner{slot: {Node: "node-a"}}
	var result claims.Result
	if owned {
		result = m.claims.Claim(m.t.Context(), m.name, slots.Claim{Owners: owners})
	} else {
		result = m.claims.Release(m.t.Context(), m.name, owners)
	}
	if result.Outcome != slots.Written {
		m.t.Errorf("slot %d, owned: %t: %+v", slot, owned, result)
	}
}

func (m *mixed) sees(nodes ...string) {
	m.t.Helper()
	m.eventually("the nodes are as expected", func() bool { return slices.Equal(m.get(m.device.Name).Spec.Nodes, nodes) })
}

// Whichever agent creates the Instance, the other can join it, claim and release slots,
// repeat what it has written, and leave.
func TestAgentsOfAkriNextToOurs(t *testing.T) {
	for name, oursFirst := range map[string]bool{"ours first": true, "Akri first": false} {
		t.Run(name, func(t *testing.T) {
			m := newMixed(t)
			join := func() { m.accepted("publish the device", m.akri.Publish(t.Context(), m.configuration, m.device)) }
			if !oursFirst {
				join()
			}
			m.publish(m.ours, camera)
			join()
			m.eventually("both nodes see it", func() bool { m.publish(m.ours, camera); return len(m.get(m.device.Name).Spec.Nodes) == 2 })
			zero, one := v0.SlotName(m.device.Name, 0), v0.SlotName(m.device.Name, 1)

			m.own(0, true)
			m.accepted("claim a free slot", m.akri.Own(t.Context(), m.device.Name, map[string]any{one: "node-b"}))
			m.owns(map[string]v0.SlotOwner{zero: "node-a", one: "node-b"})
			m.own(0, false)
			m.accepted("claim a slot that our agent released", m.akri.Own(t.Context(), m.device.Name, map[string]any{zero: "node-b", one: "node-b"}))
			m.accepted("release its slots", m.akri.Own(t.Context(), m.device.Name, map[string]any{}))
			m.owns(map[string]v0.SlotOwner{})
			m.own(0, true)
			m.own(1, true)
			if m.akri.Own(t.Context(), m.device.Name, map[string]any{one: "node-b"}) == nil {
				t.Error("Akri could claim a slot that a container of node-a has")
			}
			m.own(0, false)
			m.own(1, false)
			m.own(1, true) // the first claim after the last release
			m.own(1, false)
			join()

			m.accepted("leave", m.akri.Leave(t.Context(), "door", m.device))
			m.sees("node-a")
			join()
			m.eventually("our agent leaves", func() bool {
				m.publish(m.ours)
				return slices.Equal(m.get(m.device.Name).Spec.Nodes, []string{"node-b"})
			})
			join()
			m.publish(m.ours, camera)
			m.sees("node-b", "node-a")
		})
	}
}

// After the take-over, a device that leaves goes, although Akri's field managers own the
// entries of both nodes in nodes and slots.
func TestDevicesOfAkriLeave(t *testing.T) {
	m := newMixed(t)
	former := m.akri
	former.Node = "node-a"
	for _, akri := range []original.Agent{former, m.akri} {
		m.accepted("publish the device", akri.Publish(t.Context(), m.configuration, m.device))
		slot := v0.SlotName(m.device.Name, int(akri.Node[len(akri.Node)-1]-'a'))
		m.accepted("claim", akri.Own(t.Context(), m.device.Name, map[string]any{slot: "C:door-1:" + akri.Node}))
	}
	uid := m.get(m.device.Name).UID
	other := m.publisher("node-b")
	m.publish(m.ours, camera)
	m.publish(other, camera)
	for slot, node := range []string{"node-a", "node-b"} { // their Pods are gone
		owner := v0.Owner{Node: node, VirtualID: "door-1"}
		if result := m.claims.Release(t.Context(), m.name, map[int]v0.Owner{slot: owner}); result.Outcome != slots.Written {
			t.Fatalf("release of %s: %+v", node, result)
		}
	}
	m.eventually("node-b leaves", func() bool {
		m.publish(other)
		return slices.Equal(m.get(m.device.Name).Spec.Nodes, []string{"node-a"})
	})
	m.publish(other, camera)
	m.sees("node-a", "node-b")
	if m.get(m.device.Name).UID != uid {
		t.Error("the Instance was created again")
	}
	m.eventually("node-b leaves again", func() bool {
		m.publish(other)
		return slices.Equal(m.get(m.device.Name).Spec.Nodes, []string{"node-a"})
	})
	m.eventually("node-a deletes it", func() bool {
		m.publish(m.ours)
		object := m.object(m.device.Name)
		return object == nil || object.GetDeletionTimestamp() != nil // until the finalizers of Akri are removed
	})
}

// The way back: agents of Akri take over what ours have made. Once our field manager has
// left the Instance, they can change and remove everything.
func TestBackToAkri(t *testing.T) {
	m := newMixed(t)
	m.publish(m.ours, camera)
	m.own(0, true)
	former := m.akri
	former.Node = "node-a"
	slot := v0.SlotName(m.device.Name, 0)
	m.accepted("publish the device", former.Publish(t.Context(), m.configuration, m.device))
	m.accepted("join", m.akri.Publish(t.Context(), m.configuration, m.device))
	m.accepted("keep the slot", former.Own(t.Context(), m.device.Name, map[string]any{slot: "node-a"}))
	m.forgetOurs()

	m.accepted("leave", m.akri.Leave(t.Context(), "door", m.device))
	m.sees("node-a")
	m.accepted("release the slot", former.Own(t.Context(), m.device.Name, map[string]any{}))
	m.owns(map[string]v0.SlotOwner{})
}

// forgetOurs removes this project's field manager, as the guide says.
func (m *mixed) forgetOurs() {
	m.t.Helper()
	for i, entry := range m.object(m.device.Name).GetManagedFields() {
		if entry.Manager == v0.FieldManagerAgent {
			path := jsonpatch.Pointer("metadata", "managedFields", strconv.Itoa(i))
			m.patch(m.device.Name, string(jsonpatch.Patch{jsonpatch.Test(path+"/manager", entry.Manager), jsonpatch.Remove(path)}.Encode()))
			return
		}
	}
	m.t.Error("our field manager is not there")
}
