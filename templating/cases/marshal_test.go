package cases

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMarshal checks that no character of a value is lost on the way to a file and back.
func TestMarshal(t *testing.T) {
	for r := rune(1); r <= 0xffff; r++ {
		if r == 0x2100 {
			r = 0xfe00 // what is between are letters
		}
		for _, text := range []string{string(r), " a" + string(r) + "b\n " + string(r)} {
			var back map[string]string
			data, err := marshal(map[string]any{"a": text})
			if err == nil {
				err = yaml.Unmarshal(data, &back)
			}
			if err != nil || back["a"] != text {
				t.Fatalf("%q became %q (%q): %v", text, back["a"], data, err)
			}
		}
	}
}
