package deviceplugin

import (
	"log/slog"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"akri.sh/akri/agent/device"
	"akri.sh/akri/agent/serve/slots"
	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/kubelettest"
)

// TestPublish checks that a device is offered again only if it has changed, and that one which
// is no longer listed is withdrawn.
func TestPublish(t *testing.T) {
	s, stop := unconnected(t, kubelettest.Start(t, kubelettest.Options{}), slog.New(slog.DiscardHandler))
	stop() // from here on, this goroutine is the loop
	publish := func(list ...device.Device) (a, b knownInstance) {
		s.Publish(types.NamespacedName{Namespace: "default", Name: "cam"}, list)
		for _, f := range s.queue.take() {
			f()
		}
		return *s.devices.known["cam-aaaaaa"], *s.devices.known["cam-bbbbbb"]
	}
	a, b := camera("cam-aaaaaa", map[string]string{"URL": "a"}), camera("cam-bbbbbb", nil)
	first, _ := publish(a, b)
	b.Online = true
	a.Properties = maps.Clone(a.Properties)
	if second, changed := publish(a, b); second.device != first.device || !changed.device.Online {
		t.Error("a device that is unchanged is offered again, or one that has changed is not")
	}
	if gone, left := publish(b); gone.published || gone.device == nil || !left.published {
		t.Error("a device that is not listed is offered or forgotten, or another one is withdrawn")
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

// TestRefusalsAreObserved checks that calls which are refused again and again lead to few
// observations.
func TestRefusalsAreObserved(t *testing.T) {
	s, stop := unconnected(t, kubelettest.Start(t, kubelettest.Options{}), slog.New(slog.DiscardHandler))
	stop() // from here on, this goroutine is the loop, and nobody takes the trigger
	observed := 0
	for range 20 {
		select {
		case <-s.trigger:
		default:
		}
		s.answer(slots.Answer{Err: slots.ErrTaken})
		observed += len(s.trigger)
	}
	if observed != maxRefusals {
		t.Errorf("%d observations, want %d", observed, maxRefusals)
	}
}
