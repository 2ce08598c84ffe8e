package deviceplugin

import (
	"log/slog"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubelettest"
)

func TestReplaceDevices(t *testing.T) {
	d := newDevices()
	name := types.NamespacedName{Namespace: "default", Name: "cam"}
	a, b := camera("cam-aaaaaa", map[string]string{"URL": "a"}), camera("cam-bbbbbb", nil)
	namesOf := func(list []device.Device) (names []string) {
		for _, one := range list {
			names = append(names, one.Instance.Name)
		}
		return names
	}
	changed, gone := d.replace(name, []device.Device{a, b})
	if !slices.Equal(namesOf(changed), []string{"cam-aaaaaa", "cam-bbbbbb"}) || len(gone) > 0 {
		t.Errorf("first list: changed %v, gone %v", changed, gone)
	}
	b.Online = true
	a.Properties = maps.Clone(a.Properties)
	changed, gone = d.replace(name, []device.Device{a, b})
	if !slices.Equal(namesOf(changed), []string{"cam-bbbbbb"}) || len(gone) > 0 {
		t.Errorf("a device that is unchanged is offered again: changed %v, gone %v", changed, gone)
	}
	changed, gone = d.replace(name, []device.Device{b})
	if len(changed) > 0 || len(gone) != 1 || gone[0] != a.Instance {
		t.Errorf("one device left: changed %v, gone %v", changed, gone)
	}
	if d.replace(name, nil); len(d.published) > 0 {
		t.Errorf("a Configuration without devices is kept: %v", d.published)
	}
}

// TestOnlyOwnSlotsAreObserved checks that changes of an Instance lead to an
// observation only if they concern slots of this node: otherwise every claim in the
// cluster would make every node list its Pods.
func TestOnlyOwnSlotsAreObserved(t *testing.T) {
	k := kubelettest.Start(t, kubelettest.Options{})
	s, stop := unconnected(t, k, slog.New(slog.DiscardHandler))
	stop() // from here on, this goroutine is the loop, and nobody takes the trigger
	select {
	case <-s.trigger:
	default:
	}
	version := 1
	observed := func(usage map[string]v0.SlotOwner) bool {
		t.Helper()
		version++
		instance := &v0.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cam-aaaaaa", ResourceVersion: string(rune('0' + version))},
			Spec:       v0.InstanceSpec{ConfigurationName: "cam", Capacity: 3, DeviceUsage: usage},
		}
		s.recorded(instance)
		select {
		case <-s.trigger:
			return true
		default:
			return false
		}
	}
	for i, tc := range []struct {
		reason string
		usage  map[string]v0.SlotOwner
		want   bool
	}{
		{"no slot of this node", map[string]v0.SlotOwner{"cam-aaaaaa-0": "node-b"}, false},
		{"a slot that this node did not claim itself", map[string]v0.SlotOwner{"cam-aaaaaa-1": "node-a"}, true},
		{"another node's claim", map[string]v0.SlotOwner{"cam-aaaaaa-1": "node-a", "cam-aaaaaa-0": "node-b"}, false},
		{"the same slot through the Configuration", map[string]v0.SlotOwner{"cam-aaaaaa-1": "C:4:node-a", "cam-aaaaaa-0": "node-b"}, true},
		{"nothing", map[string]v0.SlotOwner{"cam-aaaaaa-1": "C:4:node-a", "cam-aaaaaa-0": "node-b"}, false},
	} {
		if got := observed(tc.usage); got != tc.want {
			t.Errorf("%d: %s: observed %v, want %v", i, tc.reason, got, tc.want)
		}
	}
}
