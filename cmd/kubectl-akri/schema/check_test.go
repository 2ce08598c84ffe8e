package schema

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"akri.sh/akri/templating/source"
)

// TestRuleErrors checks that a rule that cannot be evaluated is reported, unless another
// mistake explains why.
func TestRuleErrors(t *testing.T) {
	var root apiextensionsv1.JSONSchemaProps
	definition := "{type: object, properties: {list: {type: array, items: {type: integer}}, text: {type: string}}, " +
		"x-kubernetes-validations: [{rule: 'self.list[0] == 1', message: wrong}]}"
	if err := yaml.Unmarshal([]byte(definition), &root); err != nil {
		t.Fatal(err)
	}
	k := &kind{name: "Example"}
	if err := k.setSchema(&root); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		object map[string]any
		want   string
	}{
		"evaluated":              {map[string]any{"list": []any{int64(1)}}, ""},
		"violated":               {map[string]any{"list": []any{int64(2)}}, "wrong"},
		"cannot be evaluated":    {map[string]any{"list": []any{}}, "index out of bounds: 0 evaluating rule: wrong; report it as a bug"},
		"another value is wrong": {map[string]any{"list": []any{}, "text": true}, `text: must be a string, not true; quote it: "true"`},
	} {
		c := &checker{object: tc.object}
		c.content(k)
		var got string
		for _, f := range c.findings {
			got += f.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestCheck covers what the scripts of the commands do not.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		object  string
		want    []string // part of each problem, in order
		notAkri bool
	}{
		"valid": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}}}"},
		"null means absent": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a, labels: null}, spec: " +
			"{discoveryHandler: {name: b, discoveryProperties: null}, capacity: null, brokerSpec: {brokerPodSpec: {}, brokerJobSpec: null}}}"},
		"a required field is null": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: null}}",
			want: []string{"spec: discoveryHandler is missing"}},
		"another group's Configuration": {object: "{apiVersion: config.example/v1, kind: Configuration}", notAkri: true},
		"a Pod":                         {object: "{apiVersion: v1, kind: Pod}", notAkri: true},
		"an empty object":               {object: "{}", notAkri: true},
		"a misspelled group": {object: "{apiVersion: akri.shh/v0, kind: Configuration}",
			want: []string{`unknown apiVersion "akri.shh/v0"`}},
		"no kind": {object: "{apiVersion: akri.sh/v0}", want: []string{"kind is missing"}},
		"a fraction": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, " +
			"capacity: 1.5}}",
			want: []string{"spec.capacity: must be an integer of 32 bits, not the number 1.5"}},
		"an expression for a number": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b}, capacity: '{{ 1 }}'}}",
			want: []string{"only broker resources may have expressions"}},
		"fields elsewhere": {object: "{apiVersion: akri.sh/v0, kind: Configuration, name: a, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b, capacity: 1}, brokerJobSpec: {}, containers: [], template: {}}}",
			want: []string{"name: unknown field \"name\"; name belongs to metadata",
				"spec.brokerJobSpec: unknown field \"brokerJobSpec\"; brokerJobSpec belongs to spec.brokerSpec",
				"spec.containers: unknown field \"containers\"; containers belongs to spec.brokerSpec.brokerPodSpec",
				"spec.discoveryHandler.capacity: unknown field \"capacity\"; capacity belongs to spec",
				"spec.template: unknown field \"template\"; template belongs to spec.brokerSpec.brokerJobSpec"}},
		"a dot in the name": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a.b}, spec: {discoveryHandler: {name: b}}}",
			want: []string{"metadata.name: metadata.name must consist of at most 56 characters"}},
		"a label with a key that is not valid": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a, labels: {c d: e}}, " +
			"spec: {discoveryHandler: {name: b}}}", want: []string{`metadata.labels["c d"]: the key "c d" is not valid`}},
		"no metadata": {object: "{apiVersion: akri.sh/v0, kind: Configuration, spec: {discoveryHandler: {name: b}}}",
			want: []string{"metadata is missing"}},
		"a property whose name has dots and brackets": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: " +
			"{discoveryHandler: {name: b}, brokerProperties: {a: b, 'a.b[0]': 1}}}",
			want: []string{`spec.brokerProperties["a.b[0]"]: must be a string, not the number 1`}},
		"a map for a list": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a.b}, spec: {discoveryHandler: {name: b, " +
			"discoveryProperties: {name: c}}}}",
			want: []string{"metadata.name must consist", "spec.discoveryHandler.discoveryProperties: must be a list, not a map"}},
		"a boolean for a number": {object: rollout("true"),
			want: []string{"spec.rollout.maxUnavailable: must be an integer or a string, not true"}},
		"zero": {object: rollout("0"),
			want: []string{"spec.rollout.maxUnavailable: maxUnavailable must be an integer of at least 1"}},
		"a property that is too long": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: " +
			"{name: b}, brokerProperties: {K: " + strings.Repeat("x", 8193) + "}}}",
			want: []string{"spec.brokerProperties: the name of a property has at most 253 characters, and its value at most 8192"}},
		"properties that are too long together": {object: "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: " +
			"{discoveryHandler: {name: b}, sampleProperties: {K: " + strings.Repeat("x", 8192) + ", L: " + strings.Repeat("x", 8192) + "}}}",
			want: []string{"at most 16384 characters"}},
		"a short Instance": {object: "{apiVersion: akri.sh/v0, kind: Instance, metadata: {name: a}, spec: {nodes: [a]}}"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := source.Parse("object.yaml", []byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			problems, isAkri := Check(documents[0].Object(), nil)
			if isAkri == tc.notAkri {
				t.Errorf("isAkri is %v", isAkri)
			}
			if len(problems) != len(tc.want) {
				t.Fatalf("got %v, want %d problems", problems, len(tc.want))
			}
			for i, problem := range problems {
				if !strings.Contains(problem.Error(), tc.want[i]) {
					t.Errorf("got %q, want %q in it", problem, tc.want[i])
				}
			}
		})
	}
}

func rollout(maxUnavailable string) string {
	return "{apiVersion: akri.sh/v0, kind: Configuration, metadata: {name: a}, spec: {discoveryHandler: {name: b}, rollout: " +
		"{maxUnavailable: " + maxUnavailable + "}}}"
}

// TestMaximum checks the limits of strings and lists.
func TestMaximum(t *testing.T) {
	templates := make([]any, 65)
	for i := range templates {
		templates[i] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	}
	object := map[string]any{"apiVersion": "akri.sh/v0", "kind": "Configuration", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"discoveryHandler": map[string]any{"name": strings.Repeat("a", 254)}, "instanceBrokerResources": templates}}
	problems, _ := Check(object, nil)
	if len(problems) != 2 || !strings.Contains(problems[0].Hint, "at most 253") || !strings.Contains(problems[1].Hint, "at most 64") {
		t.Errorf("got %v", problems)
	}
}

// TestEmptyKey checks that a key without a character is a mistake, and stops nothing.
func TestEmptyKey(t *testing.T) {
	object := map[string]any{"apiVersion": "akri.sh/v0", "kind": "Configuration", "": int64(1),
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"discoveryHandler": map[string]any{"name": "b"}}}
	if problems, _ := Check(object, nil); len(problems) != 1 || problems[0].Cause != `unknown field ""` {
		t.Errorf("got %v", problems)
	}
}
