package claims

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v0 "akri.sh/akri/api/v0"
)

func TestChange(t *testing.T) {
	mine := v0.Owner{Node: "node-a"}
	claim := func(slots ...string) change { return change{slots: slots, to: mine} }
	release := func(slots ...string) change { return change{slots: slots, from: mine, pinned: true} }
	object := func(usage map[string]v0.SlotOwner) *v0.Instance {
		return &v0.Instance{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}, Spec: v0.InstanceSpec{DeviceUsage: usage}}
	}
	for name, tc := range map[string]struct {
		reason     string
		change     change
		object     *v0.Instance
		want       string
		impossible bool
	}{
		"map absent": {
			reason: "the first claim creates the map, unless another writer did",
			change: claim("cam-0"), object: object(nil),
			want: `[{"op":"test","path":"/spec/deviceUsage","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage","value":{"cam-0":"node-a"}}]`,
		},
		"slot absent": {
			reason: "an absent slot is free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-1": "node-b"}),
			want: `[{"op":"test","path":"/spec/deviceUsage/cam-0","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"slot empty": {
			reason: "\"\" is free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": ""}),
			want: `[{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"mine": {
			reason: "a slot that is already owned needs no request",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-a"}),
		},
		"other's": {
			reason: "an owner is never replaced by another one",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-b"}), impossible: true,
		},
		"one of two": {
			reason: "all or nothing",
			change: claim("cam-0", "cam-1"), object: object(map[string]v0.SlotOwner{"cam-1": "node-b"}), impossible: true,
		},
		"configuration's": {
			reason: "a slot held through the Configuration's resource is not free",
			change: claim("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "C:0:node-a"}), impossible: true,
		},
		"release": {
			reason: "a release tests the version, so that a delayed one cannot free a slot that was allocated again",
			change: release("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-a"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},` +
				`{"op":"test","path":"/spec/deviceUsage/cam-0","value":"node-a"},` +
				`{"op":"replace","path":"/spec/deviceUsage/cam-0","value":""}]`,
		},
		"release absent": {
			reason: "an absent slot is already free",
			change: release("cam-0"), object: object(nil),
		},
		"release other's": {
			reason: "a node never frees another node's slot",
			change: release("cam-0"), object: object(map[string]v0.SlotOwner{"cam-0": "node-b"}), impossible: true,
		},
		"escaped": {
			reason: "a name may contain characters that are special in a JSON Pointer",
			change: claim("a/b~c-0"), object: object(map[string]v0.SlotOwner{}),
			want: `[{"op":"test","path":"/spec/deviceUsage/a~1b~0c-0","value":null},` +
				`{"op":"add","path":"/spec/deviceUsage/a~1b~0c-0","value":"node-a"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, possible := tc.change.patch(tc.object)
			got := ""
			if len(patch) > 0 {
				got = string(patch.Encode())
			}
			if possible == tc.impossible || got != tc.want {
				t.Errorf("%s\n got %s (possible: %v)\nwant %s", tc.reason, got, possible, tc.want)
			}
		})
	}
}
