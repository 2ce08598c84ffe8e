package templating_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"akri.sh/akri/templating/internal/functions"
)

// unlikeSprig are the examples that sprig computes otherwise, and why we do.
var unlikeSprig = map[string]string{
	"keys":   "sprig's come in any order",
	"values": "sprig's come in any order",
	"semver": "sprig gives an object with methods; ours is a map, with keys in small letters",
}

// TestSprig: what has a name of sprig does what sprig does.
func TestSprig(t *testing.T) {
	sprigs := sprig.TxtFuncMap()
	sprigs["CAPACITY"] = func() int64 { return camera.Capacity }
	sprigs["INSTANCE_NAME"] = func() string { return camera.Instance.Name }
	sprigs["NODES"] = func() []any { return []any{"node-a", "node-b"} }
	sprigs["INSTANCE_PROPERTIES"] = func() map[string]any {
		properties := map[string]any{}
		for key, value := range camera.Instance.Properties {
			properties[key] = value
		}
		return properties
	}
	compared := 0
	for _, f := range functions.Table() {
		if sprigs[f.Name] == nil || unlikeSprig[f.Name] != "" {
			continue
		}
		compared++
		parsed, err := template.New(f.Name).Funcs(sprigs).Parse("{{ toRawJson (" + f.Example + ") }}")
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
