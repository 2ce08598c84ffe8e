package templating_test

import (
	"encoding/json"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating/internal/functions"
)

// unlikeSprig are the functions that differ from sprig, with the reason.
var unlikeSprig = map[string]string{
	"keys":   "sprig returns them in any order",
	"values": "sprig returns them in any order",
	"semver": "sprig returns an object with methods, Akri a map with lower-case keys",
}

// TestSprig checks that functions with a name of sprig behave like sprig's.
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
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("{{ %s }}: -sprig +ours\n%s", f.Example, diff)
		}
	}
	if compared < 80 {
		t.Errorf("compared %d functions only", compared)
	}
}
