package usagepatch

import (
	"testing"

	v0 "akri.sh/akri/api/v0"
	"akri.sh/akri/internal/jsonpatch"
)

func TestSetAndFree(t *testing.T) {
	type usage = map[string]v0.SlotOwner
	for name, test := range map[string]struct {
		reason string
		got    jsonpatch.Patch
		want   string
	}{
		"Nothing": {"without a change there is no patch", Set(usage{"a": "n"}, nil), "null"},
		"FieldAbsent": {
			"the first owner creates the field, unless another writer did", Set(nil, usage{"a": "n"}),
			`[{"op":"test","path":"/spec/deviceUsage","value":null},{"op":"add","path":"/spec/deviceUsage","value":{"a":"n"}}]`,
		},
		"SlotAbsent": {
			"an absent slot must still be absent", Set(usage{}, usage{"a/b~c": "n"}),
			`[{"op":"test","path":"/spec/deviceUsage/a~1b~0c","value":null},{"op":"add","path":"/spec/deviceUsage/a~1b~0c","value":"n"}]`,
		},
		"SlotFree": {
			"a free slot must still be free", Set(usage{"a": ""}, usage{"a": "n"}),
			`[{"op":"test","path":"/spec/deviceUsage/a","value":""},{"op":"replace","path":"/spec/deviceUsage/a","value":"n"}]`,
		},
		"Free": {
			"a slot to free must be unchanged since it was read", Free(usage{"a": "n"}, []string{"a"}),
			`[{"op":"test","path":"/spec/deviceUsage/a","value":"n"},{"op":"remove","path":"/spec/deviceUsage/a","value":null}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(test.got.Encode()); got != test.want {
				t.Errorf("%s\n got %s\nwant %s", test.reason, got, test.want)
			}
		})
	}
}
