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
		want    bool // it has departed
		again   time.Duration
	}
	const second, never = time.Second, time.Duration(0)
	for name, steps := range map[string][]step{
		"observed from the beginning": {
			{"a node sees it", 0, []string{"a"}, "a", false, never},
			{"no node sees it: another may find the device", 1, nil, "", false, never},
			{"the list was edited", 2, nil, "a", false, departureDelay},
			{"and repaired", 3, []string{"a"}, "a", false, never},
			{"no node sees it, but a container has a slot", 10, nil, "a", false, departureDelay},
			{"it does not last yet", 12, nil, "a", false, departureDelay - 2*second},
			{"the device has departed", 15, nil, "a", true, never},
			{"the last slot is free, and the agent deletes the Instance soon", 16, nil, "", true, never},
			{"the device is back", 17, []string{"b"}, "", false, never},
			{"it departs again", 20, nil, "b", false, departureDelay},
			{"the slot is free before", 21, nil, "", false, never},
		},
		"departed before the start": {
			{"it has no nodes", 0, nil, "a", true, never},
			{"its last slot is free", 1, nil, "", true, never},
		},
		"without nodes and slots at the start": {
			{"another node may find the device", 0, nil, "", false, never},
			{"for as long as the Instance is kept", 60, nil, "", false, never},
		},
		"a node sees it soon after the start": {
			{"it may have departed", 0, nil, "a", true, never},
			{"it is back", 1, []string{"a"}, "a", false, never},
			{"it departs", 6, nil, "a", false, departureDelay},
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
				if departed, again := a.observe(instance, now); departed != step.want || again != step.again {
					t.Errorf("%s: departed: %t, again after %s; want %t, %s", step.why, departed, again, step.want, step.again)
				}
			}
		})
	}
}
