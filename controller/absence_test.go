package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestAbsence(t *testing.T) {
	type step struct {
		why     string
		seconds int
		nodes   []string
		owner   v0.SlotOwner
		want    presence
		again   time.Duration
	}
	const second, never = time.Second, time.Duration(0)
	for name, steps := range map[string][]step{
		"observed from the beginning": {
			{"a node sees it", 0, []string{"a"}, "a", present, never},
			{"no node sees it: another may find the device", 1, nil, "", present, never},
			{"the list was edited", 2, nil, "a", present, departureDelay},
			{"and repaired", 3, []string{"a"}, "a", present, never},
			{"no node sees it, but a container has a slot", 10, nil, "a", present, departureDelay},
			{"it does not last yet", 12, nil, "a", present, departureDelay - 2*second},
			{"the device has departed", 15, nil, "a", departed, never},
			{"the last slot is free, and the agent deletes the Instance soon", 16, nil, "", departed, never},
			{"the device is back", 17, []string{"b"}, "", present, never},
			{"it departs again", 20, nil, "b", present, departureDelay},
			{"the slot is free before", 21, nil, "", present, never},
		},
		"departed before the start": {
			{"it may have", 0, nil, "a", uncertain, departureDelay},
			{"its last slot is free", 1, nil, "", uncertain, departureDelay - second},
			{"it has", 5, nil, "", departed, never},
		},
		"without nodes and slots at the start": {
			{"another node may find the device", 0, nil, "", present, never},
			{"for as long as the Instance is kept", 60, nil, "", present, never},
		},
		"a node sees it soon after the start": {
			{"it may have departed", 0, nil, "a", uncertain, departureDelay},
			{"it has not", 1, []string{"a"}, "a", present, never},
			{"it does now", 6, nil, "a", present, departureDelay},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a absence
			for _, step := range steps {
				instance := &v0.Instance{
					ObjectMeta: metav1.ObjectMeta{Name: "cam-1"},
					Spec:       v0.InstanceSpec{Nodes: step.nodes, DeviceUsage: map[string]v0.SlotOwner{"cam-1-0": step.owner, "junk": "x"}},
				}
				now := time.Unix(1000, 0).Add(time.Duration(step.seconds) * second)
				if state, again := a.observe(instance, now); state != step.want || again != step.again {
					t.Errorf("%s: %d, again after %s; want %d, %s", step.why, state, again, step.want, step.again)
				}
			}
		})
	}
}
