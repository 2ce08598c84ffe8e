package jsonpatch

import "testing"

func TestPointer(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		tokens []string
		want   string
	}{
		"Root": {"no token points at the whole document", nil, ""},
		"Slash": {
			"a slash in a key does not separate tokens",
			[]string{"metadata", "labels", "akri.sh/node"}, "/metadata/labels/akri.sh~1node",
		},
		"Tilde":    {"the escape character is escaped, too", []string{"a~1b"}, "/a~01b"},
		"EmptyKey": {"an empty key is a token", []string{"spec", ""}, "/spec/"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Pointer(test.tokens...); got != test.want {
				t.Errorf("Pointer(%q) = %q, want %q: %s", test.tokens, got, test.want, test.reason)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	patch := Patch{Test("/a", nil), Add("/a", 1), Replace("/a", "b"), Remove("/a")}
	want := `[{"op":"test","path":"/a","value":null},{"op":"add","path":"/a","value":1},` +
		`{"op":"replace","path":"/a","value":"b"},{"op":"remove","path":"/a","value":null}]`
	if got := string(patch.Encode()); got != want {
		t.Errorf("Encode() = %s, want %s: a test for null must send null", got, want)
	}
}
