package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestDepartures(t *testing.T) {
	var d departures
	start := time.Unix(1000, 0)
	for _, step := range []struct {
		why      string
		seconds  int
		nodes    []string
		owner    v0.SlotOwner
		deleted  bool
		departed bool
		again    time.Duration
	}{
		{"a node sees it", 0, []string{"a"}, "a", false, false, 0},
		{"no node sees it: another may find the device", 1, nil, "", false, false, 0},
		{"the list was edited", 2, nil, "a", false, false, departureDelay},
		{"and repaired", 3, []string{"a"}, "a", false, false, 0},
		{"no node sees it, but a container has a slot", 10, nil, "a", false, false, departureDelay},
		{"it does not last yet", 12, nil, "a", false, false, departureDelay - 2*time.Second},
		{"the device has departed", 15, nil, "a", false, true, 0},
		{"the last slot is free, and the agent deletes the Instance soon", 16, nil, "", false, true, 0},
		{"the device is back", 17, []string{"b"}, "", false, false, 0},
		{"it departs again", 20, nil, "b", false, false, departureDelay},
		{"the slot is free before", 21, nil, "", false, false, 0},
		{"it is being deleted", 30, nil, "b", true, false, 0},
	} {
		instance := v0.Instance{
			ObjectMeta: metav1.ObjectMeta{Name: "cam-1", UID: "u"},
			Spec:       v0.InstanceSpec{Nodes: step.nodes, DeviceUsage: map[string]v0.SlotOwner{"cam-1-0": step.owner, "junk": "x"}},
		}
		if step.deleted {
			instance.DeletionTimestamp = &metav1.Time{Time: start}
		}
		now := start.Add(time.Duration(step.seconds) * time.Second)
		state, again := d.observe(&instance, now)
		if got := state == departed; got != step.departed || state == uncertain || again != step.again {
			t.Errorf("%s: departed %t, again after %s; want %t, %s", step.why, got, again, step.departed, step.again)
		}
		rest, certain, again := d.remaining([]v0.Instance{instance}, now)
		if (len(rest) == 0) != step.departed || !certain || again != step.again {
			t.Errorf("%s: %d Instances remain, again after %s", step.why, len(rest), again)
		}
	}
	if len(d.absent) != 0 {
		t.Errorf("%d Instances are remembered", len(d.absent))
	}
}

// An Instance that has no nodes when this process first sees it may have departed before.
func TestDeparturesBeforeTheStart(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		nodes []string
		owner v0.SlotOwner
		want  presence
	}{
		"it has departed":          {nil, "a", departed},
		"its last slot is free":    {nil, "", departed},
		"a node sees it meanwhile": {[]string{"a"}, "a", present},
	} {
		t.Run(name, func(t *testing.T) {
			var d departures
			instance := v0.Instance{
				ObjectMeta: metav1.ObjectMeta{Name: "cam-1", UID: "u"},
				Spec:       v0.InstanceSpec{DeviceUsage: map[string]v0.SlotOwner{"cam-1-0": "a"}},
			}
			if _, certain, again := d.remaining([]v0.Instance{instance}, start); certain || again != departureDelay {
				t.Errorf("the group is reconciled at once: %t, again after %s", certain, again)
			}
			if state, again := d.observe(&instance, start.Add(time.Second)); state != uncertain || again != departureDelay-time.Second {
				t.Errorf("presence %d, again after %s", state, again)
			}
			instance.Spec.Nodes, instance.Spec.DeviceUsage["cam-1-0"] = test.nodes, test.owner
			if state, _ := d.observe(&instance, start.Add(2*time.Second)); (state == uncertain) != (test.want == departed) {
				t.Errorf("presence %d before the delay is over", state)
			}
			if state, again := d.observe(&instance, start.Add(departureDelay)); state != test.want || again != 0 {
				t.Errorf("presence %d, again after %s, want %d", state, again, test.want)
			}
		})
	}
}
