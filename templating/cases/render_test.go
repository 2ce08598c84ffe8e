package cases_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating/cases"
	"akri.sh/akri/templating/source"
)

// TestRenderKeepsCharacters checks that no character of a value is lost on the way to a file
// and back.
func TestRenderKeepsCharacters(t *testing.T) {
	for first := rune(1); first <= 0xffff; first += 0x400 {
		if first >= 0x2401 && first < 0xfc01 {
			continue // these are letters
		}
		input := "{kind: Configuration, metadata: {name: c}, spec: {configurationBrokerResources: [" +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: some}, data: {"
		want := map[string]string{}
		for r := first; r < first+0x400 && r <= 0xffff; r++ {
			escaped := fmt.Sprintf(`\u%04x`, r)
			want[escaped[1:]] = " a" + string(r) + "b\n " + string(r)
			want[escaped[2:]] = string(r)
			input += fmt.Sprintf(`%s: " a%sb\n %s", "%s": "%s", `, escaped[1:], escaped, escaped, escaped[2:], escaped)
		}
		documents, err := source.Parse("", []byte(input+"}}]}}"))
		if err != nil {
			t.Fatal(err)
		}
		in, mistakes := cases.Load(documents, cases.Options{})
		if len(mistakes) > 0 {
			t.Fatal(mistakes)
		}
		data, mistakes := in.Render()
		var back struct{ Data map[string]string }
		if err := yaml.Unmarshal(data, &back); err != nil || len(mistakes) > 0 {
			t.Fatal(err, mistakes)
		}
		for key, text := range want {
			if back.Data[key] != text {
				t.Errorf("%q became %q", text, back.Data[key])
			}
		}
	}
}
