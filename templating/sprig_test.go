package templating_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"akri.sh/akri/templating"
	"github.com/Masterminds/sprig/v3"
)

// unlikeSprig are the examples that sprig computes otherwise, and why we do.
var unlikeSprig = map[string]string{
	"keys":   "sprig's come in any order",
	"values": "sprig's come in any order",
	"semver": "sprig gives an object with methods; ours is a map, with keys in small letters",
}

// TestSprig: what has a name of sprig does what sprig does.
func TestSprig(t *testing.T) {
	functions := sprig.TxtFuncMap()
	functions["CAPACITY"] = func() int64 { return camera.Capacity }
	functions["INSTANCE_NAME"] = func() string { return camera.Instance.Name }
	functions["NODES"] = func() []any { return []any{"node-a", "node-b"} }
	functions["INSTANCE_PROPERTIES"] = func() map[string]any {
		properties := map[string]any{}
		for key, value := range camera.Instance.Properties {
			properties[key] = value
		}
		return properties
	}
	compared := 0
	for _, f := range templating.Functions() {
		if functions[f.Name] == nil || unlikeSprig[f.Name] != "" {
			continue
		}
		compared++
		parsed, err := template.New(f.Name).Funcs(functions).Parse("{{ toRawJson (" + f.Example + ") }}")
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		var out strings.Builder
		if err := parsed.Execute(&out, nil); err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		var got, want any
		if err := json.Unmarshal([]byte(out.String()), &want); err != nil {
			t.Errorf("%s: %v in %s", f.Name, err, out.String())
			continue
		}
		if err := json.Unmarshal([]byte(f.Result), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("{{ %s }} is %v here and %v in sprig", f.Example, got, want)
		}
	}
	if compared < 80 {
		t.Errorf("compared %d functions only", compared)
	}
}
