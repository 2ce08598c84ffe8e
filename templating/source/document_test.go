package source_test

import (
	"fmt"
	"strings"
	"testing"

	"akri.sh/akri/templating"
	"akri.sh/akri/templating/source"
)

// TestLocate checks the positions of the same mistake in all styles of YAML text.
func TestLocate(t *testing.T) {
	const file = `# a comment
---
apiVersion: akri.sh/v0
kind: Configuration
metadata: {name: first}
---
apiVersion: akri.sh/v0
kind: Configuration
spec:
  instanceBrokerResources:
  - apiVersion: v1
    kind: Pod
    metadata:
      name: "{{ INSTANCE_NAM }}"
    spec:
      plain: a {{ INSTANCE_NAM }}
      single: 'it''s {{ INSTANCE_NAM }}'
      double: "\"\u00e4\" {{ INSTANCE_NAM }}"
      literal: |
        first
        second {{ INSTANCE_NAM }}
      folded: >
        first
        {{ INSTANCE_NAM }}
      list:
      - {a: "{{ INSTANCE_NAM }}"}
      "{{ INSTANCE_NAM }}": key
      umlaut: "ä {{ INSTANCE_NAM }}"
`
	want := map[string]string{
		"metadata.name": "14:17", "spec.plain": "16:19", "spec.single": "17:25", "spec.double": "18:30",
		"spec.literal": "21:19", "spec.folded": "22:15", "spec.list[0].a": "26:17",
		`spec["{{ INSTANCE_NAM }}"]`: "27:11", "spec.umlaut": "28:21",
	}
	documents, err := source.Parse("c.yaml", []byte(file))
	if err != nil || len(documents) != 2 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	spec := documents[1].Object()["spec"].(map[string]any)
	template := spec["instanceBrokerResources"].([]any)[0].(map[string]any)
	_, diags := templating.Compile(templating.InstanceLevel, []map[string]any{template})
	if len(diags) != len(want) {
		t.Errorf("%d diagnostics, want %d: %v", len(diags), len(want), diags)
	}
	prefix := templating.Path{templating.Key("spec"), templating.Key("instanceBrokerResources"), templating.Index(0)}
	for _, d := range diags {
		if got := documents[1].Locate(prefix, d).String(); got != "c.yaml:"+want[d.Field.String()] {
			t.Errorf("%s is at %s, want %s", d.Field, got, want[d.Field.String()])
		}
	}
	missing := templating.Diagnostic{Field: templating.Path{templating.Key("metadata"), templating.Key("namespace")}}
	if got := documents[1].Locate(prefix, missing).String(); got != "c.yaml:14:7" {
		t.Errorf("a missing field is at %s, want the place where it is missing", got)
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct{ in, err string }{
		"nothing":             {"", ""},
		"separators":          {"---\n---\n# x\n", ""},
		"not YAML":            {"a: 1\n---\na: [\n", "c.yaml:3"},
		"twice":               {"a: 1\n---\nb: 1\nb: 2\n", `c.yaml:4: mapping key "b" already defined`},
		"twice, with a merge": {"a: &a {b: 1}\nc:\n  <<: *a\n  b: 2\n  b: 3\n", `c.yaml:5: mapping key "b" already defined`},
		"merges":              {"a: &a {b: 1, c: 1}\nd:\n  <<: *a\n  b: 2\n", ""},
		"a list":              {"a: 1\n---\n- 1\n", "c.yaml:2: this is not an object"},
		"a separator alone":   {"--- # x\na: 1\n", ""},
		"not an object":       {"text", "c.yaml:1: this is not an object"},
		"a number":            {"a: 1\n--- # x\n1\n", "c.yaml:2: this is not an object"},
		"a key that is a map": {"{a: 1}: 2\n", "c.yaml: invalid map key: map[interface {}]interface {}{\"a\":1}"},
		"an unknown anchor":   {"a: *none\n", "c.yaml: unknown anchor 'none' referenced"},
		"not a number":        {"a: .nan\n", "c.yaml: json: unsupported value: NaN"},
		"infinite":            {"---\na: .inf\n", "c.yaml: json: unsupported value: +Inf"},
		"a tab":               {"a: 1\n---\na:\n\tb: 1\n", "c.yaml:4: found character that cannot start any token"},
		"invalid UTF-8":       {"a: \xff\n", "c.yaml: invalid leading UTF-8 octet"},
		"too deep for JSON": {
			"a: " + strings.Repeat("[", 10000) + strings.Repeat("]", 10000), "c.yaml: invalid character '[' exceeded max depth",
		},
		"too deep for YAML":       {"a: " + strings.Repeat("[", 10001) + strings.Repeat("]", 10001), "c.yaml: exceeded max depth of 10000"},
		"another version of YAML": {"%YAML 1.2\n---\na: 1\n", "c.yaml: found incompatible YAML document"},
		"a merge with a list":     {"a: &a [1]\nb: {<<: *a}\n", "c.yaml: map merge requires map or sequence of maps as the value"},
		"an anchor in itself":     {"a: &a\n  b: *a\n", "c.yaml: anchor 'a' value contains itself"},
		"not Base64":              {"a: !!binary '%'\n", "c.yaml: !!binary value contains invalid base64 data"},
		"not a time":              {"a: !!timestamp x\n", "c.yaml: cannot decode !!str `x` as a !!timestamp"},
		"not a whole number":      {"a: !!int x\n", "c.yaml: cannot decode !!str `x` as a !!int"},
		"an alias bomb":           {"a: &a [1,1,1,1,1,1,1,1,1]\n" + aliasBomb(), "excessive aliasing"},
	} {
		_, err := source.Parse("c.yaml", []byte(tc.in))
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%s: error is %v, want one with %q", name, err, tc.err)
		}
	}
}

// TestMerge checks that a key after a merge key overrides it, as for kubectl.
func TestMerge(t *testing.T) {
	documents, err := source.Parse("c.yaml", []byte("base: &base {a: 1, b: 1}\nspec:\n  <<: *base\n  b: 2\n"))
	if err != nil || fmt.Sprint(documents[0].Object()["spec"]) != "map[a:1 b:2]" {
		t.Errorf("got %v, %v", documents, err)
	}
}

func aliasBomb() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 9) + "1]\n")
	}
	return b.String()
}
