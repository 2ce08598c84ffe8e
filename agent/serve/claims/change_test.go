package claims

import (
	"errors"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestChange(t *testing.T) {
	mine := v0.Owner{Node: "node-a"}
	each := func(slots []string, t transition) map[string]transition {
		all := map[string]transition{}
		for _, slot := range slots {
			all[slot] = t
		}
		return all
	}
	claim := func(slots ...string) change { return change{slots: each(slots, transition{to: mine})} }
	release := func(slots ...string) change {
		return change{slots: each(slots, transition{from: mine}), pinned: true}
	}
	object := func(usage map[string]v0.SlotOwner) *v0.Instance {
		return &v0.Instance{
			ObjectMeta: metav1.ObjectMeta{
				Name: "cam", UID: "u", ResourceVersion: "7", Labels: map[string]string{v0.NodeLabel("node-a"): ""},
			},
			Spec: v0.InstanceSpec{Capacity: 3, DeviceUsage: usage},
		}
	}
	const uid = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/labels/node.akri.sh~1node-a","value":""},`
	for name, tc := range map[string]struct {
		reason     string
		change     change
		object     *v0.Instance
		want       string
		impossible error
	}{
		"map absent": {
			reason: "the first claim creates the map, unless another writer did",
			change: claim("cam-0"), object: object(nil),
			want: uid + `{"op":"test","path":"/spec/deviceUsage","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage","value":{"cam-0":"node-a"}}]`,
		},
		"slot absent": {
			reason: "an absent slot is free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-1": "node-b"}),
			want: uid + `{"op":"test","path":"/spec/deviceUsage/cam-0","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"slot empty": {
			reason: "\"\" is free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": ""}),
			want: uid + `{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"mine": {
			reason: "a slot that is already owned needs no request",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-a"}),
		},
		"other's": {
			reason: "an owner is never replaced by another one",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-b"}), impossible: errTaken,
		},
		"left": {
			reason: "the node's agent would not see what it owns",
			change: change{slots: each([]string{"cam-0"}, transition{to: v0.Owner{Node: "node-b"}})}, object: object(nil), impossible: errLeft,
		},
		"released after it left": {
			reason: "what the node owns can still be freed",
			change: change{slots: each([]string{"cam-0"}, transition{from: v0.Owner{Node: "node-b"}}), pinned: true},
			object: object(map[string]v0.SlotOwner{"cam-0": "node-b"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"node-b"},` +
				`{"op":"remove","path":"/spec/deviceUsage/cam-0","value":null}]`,
		},
		"one of two": {
			reason: "all or nothing",
			change: claim("cam-0", "cam-1"), object: object(map[string]v0.SlotOwner{"cam-1": "node-b"}), impossible: errTaken,
		},
		"configuration's": {
			reason: "a slot held through the Configuration's resource is not free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "C:0:node-a"}), impossible: errTaken,
		},
		"shrunk": {
			reason: "after a shrink, another node may claim another slot at the same time, so the claim tests the version",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "", "cam-7": "node-b"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"shrunk and full": {
			reason: "as many slots have owners as the capacity",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-7": "node-b", "cam-8": "node-b", "cam-9": "node-b"}),
			impossible: errFull,
		},
		"shrunk and full, but in use": {
			reason: "a container has the slot already, and it must not stay free",
			change: change{slots: claim("cam-0").slots, inUse: true},
			object: object(map[string]v0.SlotOwner{"cam-0": "", "cam-7": "node-b", "cam-8": "node-b", "cam-9": "node-b"}),
			want: uid + `{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"release": {
			reason: "a release tests the version, so that a delayed one cannot free a slot that was allocated again",
			change: release("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-a"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"node-a"},` +
				`{"op":"remove","path":"/spec/deviceUsage/cam-0","value":null}]`,
		},
		"group's claim": {
			reason: "a slot that is allocated through the Configuration's resource has the virtual ID in its owner",
			change: change{slots: each([]string{"cam-0"}, transition{to: v0.Owner{Node: "node-a", VirtualID: "4"}})},
			object: object(map[string]v0.SlotOwner{"cam-0": ""}),
			want: uid + `{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"C:4:node-a"}]`,
		},
		"group's ID moved": {
			reason: "another virtual ID of the same node is another owner",
			change: change{slots: each([]string{"cam-0"}, transition{to: v0.Owner{Node: "node-a", VirtualID: "4"}})},
			object: object(map[string]v0.SlotOwner{"cam-0": "C:3:node-a"}), impossible: errTaken,
		},
		"release of Akri's owner": {
			reason: "the original Akri writes the Configuration's name in front of the virtual ID",
			change: change{slots: each([]string{"cam-0"}, transition{from: v0.Owner{Node: "node-a", VirtualID: "cam-0"}}), pinned: true},
			object: object(map[string]v0.SlotOwner{"cam-0": "C:cam-0:node-a"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"C:cam-0:node-a"},` +
				`{"op":"remove","path":"/spec/deviceUsage/cam-0","value":null}]`,
		},
		"release absent": {
			reason: "an absent slot is already free",
			change: release("cam-0"), object: object(nil),
		},
		"release other's": {
			reason: "a node never frees another node's slot",
			change: release("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-b"}), impossible: errTaken,
		},
		"escaped": {
			reason: "a name may contain characters that are special in a JSON Pointer",
			change: claim("a/b~c-0"), object: object(map[string]v0.SlotOwner{}),
			want: uid + `{"op":"test","path":"/spec/deviceUsage/a~1b~0c-0","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/a~1b~0c-0","value":"node-a"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, err := tc.change.patch(tc.object)
			got := ""
			if len(patch) > 0 {
				got = string(patch.Encode())
			}
			if !errors.Is(err, tc.impossible) || got != tc.want {
				t.Errorf("%s\n got %s, %v\nwant %s, %v", tc.reason, got, err, tc.want, tc.impossible)
			}
		})
	}
}

func TestProbePatch(t *testing.T) {
	owner := v0.Owner{Node: "node-a"}
	for name, tc := range map[string]struct {
		reason   string
		capacity int32
		usage    map[string]v0.SlotOwner
		want     string
	}{
		"free slot": {
			"admission sees the same change as for a claim", 2, map[string]v0.SlotOwner{"cam-0": "node-b"},
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/spec/deviceUsage/cam-1","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/cam-1","value":"node-a"}]`,
		},
		"no free slot": {
			"a slot beyond the capacity would be rejected", 1, map[string]v0.SlotOwner{"cam-0": "node-b", "cam-1": ""},
			`[{"op":"test","path":"/metadata/uid","value":"u"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			instance := &v0.Instance{
				ObjectMeta: metav1.ObjectMeta{Name: "cam", UID: "u"},
				Spec:       v0.InstanceSpec{Capacity: tc.capacity, DeviceUsage: tc.usage},
			}
			if got := string(probe(instance, owner).Encode()); got != tc.want {
				t.Errorf("%s\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRecordIsBounded checks that keys that cannot be slots are not passed on, unlike all else.
func TestRecordIsBounded(t *testing.T) {
	instance := &v0.Instance{ObjectMeta: metav1.ObjectMeta{Name: "cam", UID: "u", ResourceVersion: "7"}, Spec: v0.InstanceSpec{
		Nodes: []string{"node-b", "node-a"},
		DeviceUsage: map[string]v0.SlotOwner{
			"cam-0": "node-a", "cam-999": "C:x:node-b", "cam-1000": "node-a", "cam-2000000000": "node-a", "cam--1": "node-a", "cam-01": "node-a",
			"cam": "node-a", "door-1": "node-a", "cam-2": "C::",
		},
	}}
	want := map[int]v0.Owner{0: {Node: "node-a"}, 999: {Node: "node-b", VirtualID: "x"}, 2: {Node: "C::"}}
	if got := Record(instance); !maps.Equal(got.Usage, want) || !slices.Equal(got.Nodes, instance.Spec.Nodes) || got.Version != 7 {
		t.Errorf("record %+v", got)
	}
}
