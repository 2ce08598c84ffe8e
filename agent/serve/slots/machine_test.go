package slots_test

import (
	"fmt"
	"testing"
	"time"

	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
)

// TestHugeCapacity checks that a capacity beyond what the API server accepts, and records
// that nobody should have written, cost no memory.
func TestHugeCapacity(t *testing.T) {
	m := slots.New("node-a")
	m.Step(slots.InstanceRecorded{Instance: "cam", Record: slots.Record{
		Version: 1, Usage: map[int]v0.Owner{1 << 40: {Node: "node-b"}, 7: {Node: "node-a", VirtualID: "1099511627776"}},
	}})
	for _, capacity := range []int{2_000_000_000, -1} {
		for _, c := range m.Step(slots.DevicePublished{Instance: "cam", Configuration: "cams", Shared: true, Capacity: capacity, Online: true}) {
			if a, ok := c.(slots.Advertise); ok && len(a.List) > v0.MaxSlots+2 {
				t.Errorf("capacity %d: %s has a list of %d", capacity, a.Resource.Name, len(a.List))
			}
		}
	}
	if got := len(m.State().Instances[0].Slots); got > v0.MaxSlots+2 {
		t.Errorf("%d slots", got)
	}
}

// TestDeadline checks that a machine at rest has no deadline, so that its caller sleeps.
func TestDeadline(t *testing.T) {
	m := slots.New("node-a")
	m.Step(slots.DevicePublished{Instance: "cam", Configuration: "cams", Shared: true, Capacity: 2, Online: true})
	if at, found := m.Deadline(); found {
		t.Errorf("published: deadline %s", at)
	}
	m.Step(slots.DeviceWithdrawn{Instance: "cam"})
	if at, found := m.Deadline(); !found || at != slots.Quiet {
		t.Errorf("withdrawn: deadline %s (%v), want %s", at, found, slots.Quiet)
	}
	m.Step(slots.Ticked{Now: slots.Quiet})
	if at, found := m.Deadline(); found || len(m.State().Instances)+len(m.State().Groups) > 0 {
		t.Errorf("forgotten: deadline %s, %+v", at, m.State())
	}
}

// TestCostOfEvents checks that an event costs no more on a node with many Instances than on
// one with a few, in groups of their own or in one group: it concerns one of them, or none.
// Only the list of a group, after an Instance's offer has changed, has all members.
// Allocations stand for the cost, because they do not depend on the machine that runs the
// test.
func TestCostOfEvents(t *testing.T) {
	for grouping, configurationOf := range map[string]func(instance string) string{
		"own groups": func(instance string) string { return "of-" + instance },
		"one group":  func(string) string { return "all" },
	} {
		published := func(instance string, online bool) slots.DevicePublished {
			return slots.DevicePublished{
				Instance: instance, Configuration: configurationOf(instance), Shared: true, Capacity: 2, Online: online,
			}
		}
		for name, tc := range map[string]struct {
			event func(n int) slots.Event
			more  float64 // allocations on a node with many Instances
		}{
			"ticked": {event: func(n int) slots.Event { return slots.Ticked{Now: time.Duration(n)} }},
			"recorded": {event: func(n int) slots.Event {
				return slots.InstanceRecorded{Instance: "cam-0", Record: slots.Record{Version: uint64(n)}}
			}},
			"observed": {event: func(n int) slots.Event { return slots.PodsObserved{Began: time.Duration(n)} }},
			"allocated": {event: func(n int) slots.Event {
				return slots.AllocateRequested{Call: slots.Call(n), Resource: slots.Resource{Name: "cam-0"}, IDs: []int{0}}
			}},
			"offline and online": {event: func(n int) slots.Event { return published("cam-0", n%2 == 0) }, more: 40},
		} {
			cost := func(instances int) float64 {
				m := slots.New("node-a")
				for i := range instances {
					instance := fmt.Sprintf("cam-%d", i)
					m.Step(published(instance, true))
					m.Step(slots.InstanceRecorded{Instance: instance, Record: slots.Record{Version: 1}})
				}
				n := 1
				return testing.AllocsPerRun(20, func() {
					n++
					m.Step(tc.event(n))
					m.Deadline()
				})
			}
			if few, many := cost(5), cost(500); many > few+20+tc.more {
				t.Errorf("%s, %s: %v allocations on a node with 500 Instances, %v with 5", grouping, name, many, few)
			}
		}
	}
}

// TestFailedClaims checks that the claim of a slot of a local device, which its container
// has already, is repeated with increasing back-off while it fails, at other times on another
// node, and at once when a patch of the Instance is written.
func TestFailedClaims(t *testing.T) {
	claims := func(name string) (m *slots.Machine, times []time.Duration) {
		m = slots.New(name)
		m.Step(slots.DevicePublished{Instance: "usb", Configuration: "usbs", Capacity: 2, Online: true})
		m.Step(slots.InstanceRecorded{Instance: "usb", Record: slots.Record{Version: 1}})
		commands := m.Step(slots.AllocateRequested{Call: 1, Resource: slots.Resource{Name: "usb"}, IDs: []int{0}})
		for now := time.Duration(0); now < time.Hour; {
			for _, c := range commands {
				if _, ok := c.(slots.Claim); ok {
					times = append(times, now)
					m.Step(slots.ClaimSettled{Instance: "usb", Slots: []int{0}, Result: slots.Result{Outcome: slots.Refused}})
				}
			}
			at, found := m.Deadline()
			if !found {
				t.Fatalf("%s: no further attempt after %s", name, now)
			}
			now = at
			commands = m.Step(slots.Ticked{Now: now})
		}
		m.Step(slots.ClaimSettled{Instance: "usb", Slots: []int{0}, Result: slots.Result{Outcome: slots.Refused}}) // one may be in flight
		return m, times
	}
	m, here := claims("node-a")
	_, there := claims("node-b")
	if len(here) < 60 || len(here) > 80 {
		t.Errorf("%d attempts in an hour, want about one each minute", len(here))
	}
	same := 0
	for i := range min(len(here), len(there)) {
		if i > 0 && here[i] == there[i] {
			same++
		}
	}
	if same > 1 {
		t.Errorf("%d of %d attempts are at the same time on two nodes", same, len(here))
	}

	m.Step(slots.AllocateRequested{Call: 2, Resource: slots.Resource{Name: "usb"}, IDs: []int{1}})
	written := slots.Record{Version: 2, Usage: map[int]v0.Owner{1: {Node: "node-a"}}}
	for _, c := range m.Step(slots.ClaimSettled{Instance: "usb", Slots: []int{1}, Result: slots.Result{Record: &written}}) {
		if claim, ok := c.(slots.Claim); ok && len(claim.Owners) == 1 && claim.Owners[0].Node == "node-a" {
			return
		}
	}
	t.Error("the claim is not repeated although another one was written")
}
