package templating_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"

	"akri.sh/akri/templating/internal/functions"
)

// TestSprig checks that sprig is called only for functions that give the same result each time,
// and that Akri's own functions with a name of sprig say why, and behave alike in their
// examples.
func TestSprig(t *testing.T) {
	all, hermetic := sprig.TxtFuncMap(), sprig.HermeticTxtFuncMap()
	own := 0
	for _, f := range allFunctions() {
		switch {
		case f.Sprig && hermetic[f.Name] == nil:
			t.Errorf("%s of sprig depends on more than its arguments", f.Name)
		case f.Sprig != (all[f.Name] != nil && f.Unlike == ""):
			t.Errorf("%s: Unlike %q must say why sprig's function is not called, if there is one", f.Name, f.Unlike)
		case f.Unlike != "" && !slices.Contains([]string{"keys", "values", "semver"}, f.Name): // their results differ by design
			own++
			compareWithSprig(t, f)
		}
	}
	if own < 30 {
		t.Errorf("compared %d functions only", own)
	}
}

func compareWithSprig(t *testing.T, f *functions.Function) {
	t.Helper()
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
	parsed, err := template.New(f.Name).Funcs(sprigs).Parse("{{ toRawJson (" + f.Example + ") }}")
	if err != nil {
		t.Errorf("%s: %v", f.Name, err)
		return
	}
	var out strings.Builder
	if err := parsed.Execute(&out, nil); err != nil {
		t.Errorf("%s: %v", f.Name, err)
		return
	}
	var got, want any
	if err := json.Unmarshal([]byte(out.String()), &want); err != nil {
		t.Errorf("%s: %v in %s", f.Name, err, out.String())
	}
	if err := json.Unmarshal([]byte(f.Result), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("{{ %s }}: -sprig +ours\n%s", f.Example, diff)
	}
}
