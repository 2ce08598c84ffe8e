package claims

import (
	"testing"

	v0 "akri.sh/akri/api/v0"
)

func TestBuild(t *testing.T) {
	mine := v0.Owner{Node: "node-a"}
	claim := func(slots ...string) change { return change{slots: slots, to: mine} }
	release := func(slots ...string) change { return change{slots: slots, from: mine, pinned: true} }
	object := func(usage map[string]string) raw { return raw{version: "7", present: true, usage: usage} }
	for name, tc := range map[string]struct {
		reason     string
		change     change
		object     raw
		want       string
		impossible bool
	}{
		"map absent": {
			reason: "the first claim of all makes the map, unless another did",
			change: claim("cam-0"), object: raw{version: "7"},
			want: `[{"op":"test","path":"/spec/deviceUsage","value":null},{"op":"add","path":"/spec/deviceUsage","value":{"cam-0":"node-a"}}]`,
		},
		"slot absent": {
			reason: "absent is free",
			change: claim("cam-0"), object: object(map[string]string{"cam-1": "node-b"}),
			want: `[{"op":"test","path":"/spec/deviceUsage/cam-0","value":null},{"op":"add","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"slot empty": {
			reason: "\"\" is free",
			change: claim("cam-0"), object: object(map[string]string{"cam-0": ""}),
			want: `[{"op":"test","path":"/spec/deviceUsage/cam-0","value":""},{"op":"replace","path":"/spec/deviceUsage/cam-0","value":"node-a"}]`,
		},
		"mine":            {reason: "what is as wanted needs no request", change: claim("cam-0"), object: object(map[string]string{"cam-0": "node-a"})},
		"other's":         {reason: "an owner changes only by way of free", change: claim("cam-0"), object: object(map[string]string{"cam-0": "node-b"}), impossible: true},
		"one of two":      {reason: "all or nothing", change: claim("cam-0", "cam-1"), object: object(map[string]string{"cam-1": "node-b"}), impossible: true},
		"configuration's": {reason: "a slot held through the Configuration's resource is held", change: claim("cam-0"), object: object(map[string]string{"cam-0": "C:0:node-a"}), impossible: true},
		"release": {
			reason: "a release names the version, so that a late one frees nothing given again",
			change: release("cam-0"), object: object(map[string]string{"cam-0": "node-a"}),
			want: `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"test","path":"/spec/deviceUsage/cam-0","value":"node-a"},{"op":"replace","path":"/spec/deviceUsage/cam-0","value":""}]`,
		},
		"release absent":  {reason: "absent is free already", change: release("cam-0"), object: raw{version: "7"}},
		"release other's": {reason: "nobody frees another node's slot", change: release("cam-0"), object: object(map[string]string{"cam-0": "node-b"}), impossible: true},
		"escaped": {
			reason: "a name may hold what JSON Pointer gives a meaning",
			change: claim("a/b~c-0"), object: object(nil),
			want: `[{"op":"test","path":"/spec/deviceUsage/a~1b~0c-0","value":null},{"op":"add","path":"/spec/deviceUsage/a~1b~0c-0","value":"node-a"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			patch, possible := tc.change.build(tc.object)
			if possible == tc.impossible || string(patch) != tc.want {
				t.Errorf("%s\n got %s (possible: %v)\nwant %s", tc.reason, patch, possible, tc.want)
			}
		})
	}
}
