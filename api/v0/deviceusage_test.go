package v0

import "testing"

func TestOwners(t *testing.T) {
	cases := []struct {
		value string
		want  Owner
	}{
		{"", Owner{}},
		{"node-a", Owner{Node: "node-a"}},
		{"C:0:node-b", Owner{Node: "node-b", VirtualID: "0"}},
		{"C:akri-onvif-0:node-b", Owner{Node: "node-b", VirtualID: "akri-onvif-0"}},
	}
	for _, tc := range cases {
		got, err := ParseOwner(tc.value)
		if err != nil || got != tc.want {
			t.Errorf("ParseOwner(%q) = %+v, %v; want %+v", tc.value, got, err, tc.want)
		}
		if got.String() != tc.value {
			t.Errorf("ParseOwner(%q).String() = %q", tc.value, got)
		}
		if got.Free() != (tc.value == "") {
			t.Errorf("ParseOwner(%q).Free() = %t", tc.value, got.Free())
		}
	}
	for _, bad := range []string{"C:0:", "C::node", ":", "C:0", "a:b:c", "C:0:node:x"} {
		if got, err := ParseOwner(bad); err == nil {
			t.Errorf("ParseOwner(%q) = %+v, want an error", bad, got)
		}
	}
}
